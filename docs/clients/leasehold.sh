# Locks of Leasehold for scripts of sh. `. leasehold.sh`, then:
#
#   lock nightly -w 30s || exit    # the arguments of `leasehold hold`; its exit code if there is no lock
#   echo "$LOCK_TOKEN"             # the fencing token, to be sent along with each write
#   unlock
#
# One lock at a time. If it is lost, the script gets SIGTERM. It is held until `unlock`, or until the script and all that it has
# started have ended; what shall not keep it is started with `8>&- 9<&-`.

lock() {
    LOCK_DIR=$(mktemp -d) && mkfifo "$LOCK_DIR/in" "$LOCK_DIR/out" || return 70
    leasehold hold "$@" <"$LOCK_DIR/in" >"$LOCK_DIR/out" &
    LOCK_PID=$!
    exec 8>"$LOCK_DIR/in" 9<"$LOCK_DIR/out"
    rm -r "$LOCK_DIR"
    while read -r LOCK_LINE <&9; do
        case $LOCK_LINE in '{"held"'*) break ;; esac
    done
    LOCK_TOKEN=${LOCK_LINE#*\"token\":} LOCK_TOKEN=${LOCK_TOKEN%%,*}
    case $LOCK_LINE in
    '{"held"'*) lock_watch & LOCK_WATCH=$! ;;
    *) exec 8>&- 9<&- && wait "$LOCK_PID" ;;
    esac
}

unlock() {
    { kill "$LOCK_WATCH" && wait "$LOCK_WATCH"; } 2>/dev/null || :
    exec 8>&- 9<&-
    wait "$LOCK_PID"
}

# Tells the script of the loss: the last line says so, or the server has died and there is no other line. A script that has ended
# is not told: its number may be another's.
lock_watch() {
    exec 8>&-
    while read -r LOCK_LINE <&9; do :; done
    LOCK_WATCH=$(exec sh -c 'echo "$PPID"')
    [ "$(ps -o ppid= -p "$LOCK_WATCH" | tr -d ' ')" = "$$" ] && kill -s TERM $$
}
