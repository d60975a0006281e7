_tapdeck() {
    local words=() rest=$COMP_LINE current=$2 quote= word reply i
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        # Bash splits words at : and =; parts without a blank between them are one word.
        if ((i > 0)) && [[ $rest != [[:blank:]]* ]]; then
            words[${#words[@]} - 1]+=$word
        else
            words+=("$word")
        fi
        rest=${rest#*"$word"}
    done
    word=${words[${#words[@]} - 1]}
    case $word in [\'\"]*) quote=${word:0:1} word=${word:1} ;; esac
    # Bash replaces only the last part, so the part in front of it is not repeated.
    local before=${word%"$current"}
    words[${#words[@]} - 1]=${word//\\/}
    COMPREPLY=()
    while IFS= read -r reply || [[ $reply ]]; do
        reply=${reply#"${before//\\/}"}
        [[ $quote ]] || printf -v reply %q "$reply"
        COMPREPLY+=("$reply")
    done < <(
        VARIABLE=bash _CLAP_IFS=$'\n' _CLAP_COMPLETE_INDEX=$((${#words[@]} - 1)) \
            tapdeck -- "${words[@]}" 2>/dev/null
    )
    if [[ ${COMPREPLY-} == *[=/:] ]]; then
        compopt -o nospace
    fi
}
complete -o bashdefault -o nosort -F _tapdeck tapdeck
