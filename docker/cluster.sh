#!/bin/sh
# A Redis Cluster of three nodes in one container: what the nodes call each other, 127.0.0.1 and a port, is right
# on the host too, where clients follow it.
set -eu

nodes=
for port in 6401 6402 6403; do
    rm -rf "/tmp/$port"
    mkdir "/tmp/$port"
    redis-server --port "$port" --bind 0.0.0.0 --protected-mode no --dir "/tmp/$port" --logfile "/tmp/$port/log" \
        --daemonize yes --save '' --appendonly no \
        --cluster-enabled yes --cluster-node-timeout 5000 --cluster-announce-ip 127.0.0.1
    nodes="$nodes 127.0.0.1:$port"
done
for port in 6401 6402 6403; do
    until redis-cli -p "$port" ping | grep -q PONG; do sleep 0.1; done
done

# shellcheck disable=SC2086 # one word for each node
redis-cli --cluster create $nodes --cluster-replicas 0 --cluster-yes
exec tail -F /tmp/6401/log /tmp/6402/log /tmp/6403/log
