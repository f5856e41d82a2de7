#!/bin/sh
# A primary, a replica and three Sentinels in one container: the addresses that the Sentinels tell, 127.0.0.1 and a
# port, are right on the host too, where clients follow them.
set -eu

redis() {
    port=$1
    shift
    rm -rf "/tmp/$port"
    mkdir "/tmp/$port"
    redis-server --port "$port" --bind 0.0.0.0 --protected-mode no --dir "/tmp/$port" --logfile "/tmp/$port/log" \
        --daemonize yes --save '' --appendonly no --replica-announce-ip 127.0.0.1 --repl-diskless-sync-delay 0 "$@"
    until redis-cli -p "$port" ping | grep -q PONG; do sleep 0.1; done
}

sentinel() {
    port=$1
    rm -rf "/tmp/$port"
    mkdir "/tmp/$port"
    cat >"/tmp/$port/sentinel.conf" <<EOF
port $port
bind 0.0.0.0
protected-mode no
daemonize yes
dir /tmp/$port
logfile /tmp/$port/log
sentinel announce-ip 127.0.0.1
sentinel monitor leasehold 127.0.0.1 6396 2
sentinel down-after-milliseconds leasehold 1000
sentinel failover-timeout leasehold 5000
EOF
    redis-server "/tmp/$port/sentinel.conf" --sentinel
}

redis 6396
redis 6397 --replicaof 127.0.0.1 6396
for port in 26391 26392 26393; do
    sentinel "$port"
done
exec tail -F /tmp/26391/log /tmp/26392/log /tmp/26393/log
