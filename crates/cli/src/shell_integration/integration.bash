# Marks prompts, commands and their output (OSC 133).
__tapdeck_done() {
    local code=$?
    if [[ -n $__tapdeck_ran ]]; then
        __tapdeck_ran=
        printf '\e]133;D;%s\a' "$code"
    fi
    return "$code"
}

# Runs behind everything else that sets the prompt.
__tapdeck_wrap() {
    if [[ $PS1 != *'133;A'* ]]; then
        PS1='\[\e]133;A\a\]'$PS1'\[\e]133;B\a\]'
    fi
    if [[ $PS0 != *'133;C'* ]]; then
        PS0+='\e]133;C\a'
        # An assignment without a process or a word of output.
        if shopt -q promptvars; then
            PS0+='${__tapdeck_ran:0:$((__tapdeck_ran = 1, 0))}'
        fi
    fi
}

__tapdeck_ran=
if ((BASH_VERSINFO[0] > 5 || (BASH_VERSINFO[0] == 5 && BASH_VERSINFO[1] >= 1))); then
    PROMPT_COMMAND=(__tapdeck_done "${PROMPT_COMMAND[@]}" __tapdeck_wrap)
else
    PROMPT_COMMAND=$'__tapdeck_done\n'"${PROMPT_COMMAND-}"$'\n__tapdeck_wrap'
fi
