# Reads the user's file with the user's ZDOTDIR, which stays.
if (( ${+__tapdeck_user} )); then
    ZDOTDIR=$__tapdeck_user
else
    unset ZDOTDIR
fi
# A file of the system may have named it after the other ZDOTDIR.
if [[ ${HISTFILE-} == $__tapdeck_dir/* ]]; then
    HISTFILE=${ZDOTDIR-$HOME}/${HISTFILE##*/}
fi
unset __tapdeck_dir __tapdeck_user
if [[ -r ${ZDOTDIR-$HOME}/.zshrc ]]; then
    source ${ZDOTDIR-$HOME}/.zshrc
fi

