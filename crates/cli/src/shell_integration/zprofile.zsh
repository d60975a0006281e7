# Reads the user's file with the user's ZDOTDIR.
if (( ${+__tapdeck_user} )); then
    ZDOTDIR=$__tapdeck_user
else
    unset ZDOTDIR
fi
if [[ -r ${ZDOTDIR-$HOME}/.zprofile ]]; then
    source ${ZDOTDIR-$HOME}/.zprofile
fi
if (( ${+ZDOTDIR} )); then
    __tapdeck_user=$ZDOTDIR
else
    unset __tapdeck_user
fi
ZDOTDIR=$__tapdeck_dir
