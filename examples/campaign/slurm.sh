#!/bin/sh
# sbatch examples/campaign/slurm.sh: the first task coordinates, all of them judge.
# Submitted again, the campaign goes on where it was.
#SBATCH --job-name=plumb
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=08:00:00
#SBATCH --signal=B:TERM@60
set -eu

state=${PLUMB_STATE:-$HOME/plumb-campaign} # on a file system of the first node
mkdir -p "$state"
export PLUMB_STORE="$state/plumb.db"
host=$(hostname -f)

# plumb refuses to listen beyond loopback without a token and TLS.
[ -s "$state/token" ] || (umask 077 && openssl rand -hex 32 >"$state/token")
[ -s "$state/key.pem" ] || (umask 077 && openssl req -x509 -newkey ed25519 -nodes -days 30 -keyout "$state/key.pem" -out "$state/cert.pem" -subj "/CN=$host" -addext "subjectAltName=DNS:$host")

set -- --listen 0.0.0.0:4222 --token-file "$state/token" --tls-cert "$state/cert.pem" --tls-key "$state/key.pem"
if plumb campaign status nightly >/dev/null 2>&1; then
	plumb campaign serve --resume nightly "$@" &
else
	plumb campaign serve tests/ --candidate native,torch:fx -n 1000 --name nightly "$@" &
fi
coordinator=$!

srun plumb worker --join "tls://$host:4222" --subjects torch,native,torch:fx --token-file "$state/token" --ca "$state/cert.pem" -j "$SLURM_CPUS_PER_TASK" &
wait "$coordinator"
