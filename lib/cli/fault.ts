/** `fault`: an upstream that misbehaves on request, until a signal stops it. */
import { FAULTS, readFault, type RequestedFault, startFaultServer } from "../fault/mod.ts";
import { CLIENT_CODECS } from "../protocols/client_codecs.ts";
import { type Invocation, UsageError } from "./arguments.ts";
import { writeErr, writeOut } from "./output.ts";
import { listenForStopSignals } from "./shutdown.ts";

/** Address by default. */
const HOSTNAME = "127.0.0.1";
const PORT = 8795;

/** Serves faults. Returns the exit code. @throws {UsageError} */
export async function fault({ values }: Pick<Invocation, "values">): Promise<number> {
  const { hostname = HOSTNAME, port: typed = String(PORT), always: word } = values;
  const port = /^\d{1,5}$/.test(typed) ? Number(typed) : NaN;
  if (!(port <= 65_535)) throw new UsageError(`Cannot listen on port "${typed}": expected a number from 0 to 65535`);
  const always = word === undefined ? undefined : readFault(word, "wire");
  if (word !== undefined && always === undefined) {
    const known = Object.values(FAULTS).map(({ example }) => example).join(", ");
    throw new UsageError(`Unknown fault "${word}". Known faults: ${known}`);
  }
  let server: ReturnType<typeof startFaultServer>;
  try {
    server = startFaultServer({
      hostname,
      port,
      codecs: Object.values(CLIENT_CODECS),
      always,
      onRequest: printRequest,
    });
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    writeErr(`Cannot listen on ${hostname}:${port}: ${error.message}\n`);
    return 1;
  }
  const { first } = listenForStopSignals();
  writeOut(banner(server, word));
  await first;
  await server[Symbol.asyncDispose]();
  return 0;
}

function banner({ url }: { url: string }, always: string | undefined): string {
  const when = always === undefined ? "faults as the last user text or the model id asks" : `always ${always}`;
  return `Fault server at ${url}, ${when}. As an upstream:\n` +
    `  { "vendor": "openai-compatible", "base_url": "${url}/v1", "protocols": ["chat", "responses"] }\n`;
}

function printRequest(
  { path, stream, fault }: { path: string; stream: boolean; fault: RequestedFault | undefined },
): void {
  const { name = "no fault", after, status, ms, bytes } = fault ?? {};
  const facts = Object.entries({ after, status, ms, bytes }).flatMap(([fact, value]) =>
    value === undefined ? [] : [`${fact} ${value}`]
  );
  writeOut(`${path}${stream ? ", streamed" : ""}: ${[name, ...facts].join(", ")}\n`);
}
