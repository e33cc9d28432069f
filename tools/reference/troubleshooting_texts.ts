/** The sections of the troubleshooting page about the start and the commands. */

/** The sections in Markdown. `@commands@` stands for the operator's texts of the kind `commands`. */
export const START_TEXT = `
## The start and the commands

### No API key is in use

- Meaning: The gateway runs, but its store has no key. Without a terminal, the start creates none, because it would stay in the log.
- See more: \`sluice keys list\`; the start of the log (\`journalctl -u sluice\`, \`docker logs\`, \`kubectl logs\`).
- Do: Run the command after \`Add a key:\`. It prints the key once, at your terminal. The gateway needs no restart.

| Started by | Command for the first key |
| --- | --- |
| systemd | \`runuser -u sluice -- sh -c 'cd /var/lib/sluice && sluice keys add NAME --config /etc/sluice/sluice.jsonc'\` |
| Docker | \`docker exec CONTAINER sluice keys add NAME\` |
| Kubernetes | \`kubectl exec POD -- sluice keys add NAME\` |
| a script | \`cd FOLDER && (umask 077; sluice keys add NAME > first-key)\`: a file that only you can read |

### The environment variable "NAME" is not set

- Meaning: The configuration takes a secret from this variable, which is empty or not set.
- See more: \`sluice doctor\`; under systemd \`/etc/sluice/sluice.env\`, in Docker \`--env-file\`.
- Do: \`export NAME=…\`, then start again. A running gateway sees new variables only after a restart.

### PATH: Missing, Unknown member, Expected …

- Meaning: The configuration has a mistake at this path. Every mistake has a line, and the exit code is 1.
- See more: [Configuration](reference/configuration.md) lists all members with examples.
- Do: Correct the file, then run \`sluice check\`.

@configuration@

### Cannot read the configuration "FILE"

- Meaning: The file that \`--config\` or \`SLUICE_CONFIG\` names does not exist, or may not be read.
- See more: \`ls -l FILE\`. An executable may read only the working folder, /etc/sluice and /var/lib/sluice.
- Do: Correct the path or the permissions. \`sluice init\` writes a first file.

### Cannot write "FILE" here

- Meaning: \`sluice init\` may not write this file. An executable may write only to ./data and /var/lib/sluice.
- See more: \`sluice help init\`.
- Do: Run the command that the message shows. It prints the configuration, and your shell writes the file.

### A password does not belong in the file

- Meaning: \`store\` or \`limits_store\` has a password, which a file would leak.
- See more: The line names the member.
- Do: Put the whole address into \`SLUICE_STORE\` or \`SLUICE_LIMITS_STORE\`.

### Cannot listen on HOST:PORT

- Meaning: Another process uses the port, the address does not exist, or the port needs more privileges.
- See more: \`ss -ltnp\`; the message names the cause.
- Do: Stop the other process, or choose a port with \`--port\`.

### Cannot open the store "ADDRESS"

- Meaning: The database cannot be reached or opened, another process uses the file, or its version is not supported.
- See more: \`sluice doctor\`; the message names the cause.
- Do: Repair the database or the file's permissions. For a newer version, start that version or restore a backup.

@commands@

### Cannot open the journal "FILE"

- Meaning: Another process uses the file, or its folder cannot be written.
- See more: \`ls -l\` of the folder; each node needs a journal of its own.
- Do: Correct the permissions, or set another \`nodes.journal\`.

### Unknown command, Unknown flag, Expected "…"

- Meaning: The command line is wrong; the exit code is 2.
- See more: \`sluice help\` and \`sluice help keys add\`.
- Do: Correct the command.

@usage@
`;
