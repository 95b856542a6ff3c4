#compdef ibifs
# Completion of ibifs for zsh. Names are quoted by zsh itself.
_ibifs() {
    local line word
    local -a whole begun whole_shown begun_shown
    for line in "${(@f)$(command ibifs complete zsh -- "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2> /dev/null)}"; do
        word=${line%%$'\t'*}
        [[ -n $word ]] || continue
        if [[ $word == *[/=] ]]; then
            begun+=("$word") begun_shown+=("${line/$'\t'/  }")
        else
            whole+=("$word") whole_shown+=("${line/$'\t'/  }")
        fi
    done
    compadd -l -S '' -d begun_shown -a begun
    compadd -l -d whole_shown -a whole
}
if [[ ${funcstack[1]-} == _ibifs ]]; then
    _ibifs "$@"
else
    compdef _ibifs ibifs
fi
