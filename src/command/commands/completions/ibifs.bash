# Completion of ibifs for bash.
_ibifs() {
    local -a told
    # The line, since bash cuts words at the signs that identifiers and modifiers are made of.
    mapfile -t told < <(command ibifs complete bash -- "${COMP_LINE:0:COMP_POINT}" "$2" 2> /dev/null)
    # Several names are shown and quoted as those of files are; one alone comes quoted.
    [[ ${told[0]-} != names ]] || compopt -o filenames
    COMPREPLY=("${told[@]:1}")
    [[ ${COMPREPLY[0]-} != *[/=] ]] || compopt -o nospace
}
complete -o nosort -F _ibifs ibifs
