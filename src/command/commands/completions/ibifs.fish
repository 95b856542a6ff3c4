# Completion of ibifs for fish. Names are quoted by fish itself.
function __ibifs_complete
    # The words before the cursor as they are meant, and the one at it as it is written.
    command ibifs complete fish -- (commandline -opc)[2..] "$(commandline -ct)" 2>/dev/null
end
complete -c ibifs -f -k -a '(__ibifs_complete)'
