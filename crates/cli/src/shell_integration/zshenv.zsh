# Reads the user's file with the user's ZDOTDIR.
__tapdeck_dir=$ZDOTDIR
if (( ${+TAPDECK_ZDOTDIR} )); then
    ZDOTDIR=$TAPDECK_ZDOTDIR
    unset TAPDECK_ZDOTDIR
else
    unset ZDOTDIR
fi
if [[ -r ${ZDOTDIR-$HOME}/.zshenv ]]; then
    source ${ZDOTDIR-$HOME}/.zshenv
fi
if [[ -o interactive ]]; then
    (( ${+ZDOTDIR} )) && __tapdeck_user=$ZDOTDIR
    ZDOTDIR=$__tapdeck_dir
else
    unset __tapdeck_dir
fi
