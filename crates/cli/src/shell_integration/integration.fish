# Marks prompts, commands and their output (OSC 133), as fish 4 does by itself.
if string match -qr '^[0-3]\.' -- $version
    function __tapdeck_preexec --on-event fish_preexec
        printf '\e]133;C\a'
    end

    function __tapdeck_postexec --on-event fish_postexec
        printf '\e]133;D;%s\a' $status
    end

    function __tapdeck_status
        return $argv[1]
    end

    functions --query fish_prompt
    and functions --copy fish_prompt __tapdeck_user_prompt
    function fish_prompt
        set --local code $status
        printf '\e]133;A\a'
        __tapdeck_status $code
        __tapdeck_user_prompt
        printf '\e]133;B\a'
    end
end
