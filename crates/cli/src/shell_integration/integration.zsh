# Marks prompts, commands and their output (OSC 133).
typeset -g __tapdeck_ran=
typeset -ga precmd_functions preexec_functions

__tapdeck_precmd() {
    local code=$?
    emulate -L zsh
    if [[ -n $__tapdeck_ran ]]; then
        __tapdeck_ran=
        print -n -- "\e]133;D;${code}\a"
    fi
}

# Runs behind everything else that sets the prompt.
__tapdeck_wrap() {
    emulate -L zsh
    if [[ $PS1 != *'133;A'* ]]; then
        PS1=$'%{\e]133;A\a%}'$PS1$'%{\e]133;B\a%}'
    fi
    precmd_functions=(${precmd_functions:#__tapdeck_wrap} __tapdeck_wrap)
}

__tapdeck_preexec() {
    emulate -L zsh
    __tapdeck_ran=1
    print -n -- "\e]133;C\a"
}

precmd_functions=(__tapdeck_precmd $precmd_functions __tapdeck_wrap)
preexec_functions+=(__tapdeck_preexec)
