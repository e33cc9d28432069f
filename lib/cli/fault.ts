/** `fault`: runs an upstream that fails on request, until a signal stops it. */
import { FAULTS, readFault, type RequestedFault, startFaultServer } from "../fault/mod.ts";
import { CLIENT_CODECS } from "../protocols/client_codecs.ts";
import { type Invocation, UsageError } from "./arguments.ts";
import { writeErr, writeOut } from "./output.ts";
import { listenForStopSignals } from "./shutdown.ts";

const DEFAULT_HOSTNAME = "127.0.0.1";
const DEFAULT_PORT = 8795;

/** Runs the server until a signal stops it. Returns the exit code. @throws {UsageError} if a flag is wrong */
export async function fault({ values }: Pick<Invocation, "values">): Promise<number> {
  const { hostname = DEFAULT_HOSTNAME, port: portText = String(DEFAULT_PORT), always: faultText } = values;
  const port = /^\d{1,5}$/.test(portText) ? Number(portText) : NaN;
  if (!(port <= 65_535)) throw new UsageError(`Cannot listen on port "${portText}": expected a number from 0 to 65535`);
  const always = faultText === undefined ? undefined : readFault(faultText, "wire");
  if (faultText !== undefined && always === undefined) {
    const known = Object.values(FAULTS).map(({ example }) => example).join(", ");
    throw new UsageError(`Unknown fault "${faultText}". Known faults: ${known}`);
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
  writeOut(startText(server, faultText));
  await first;
  await server[Symbol.asyncDispose]();
  return 0;
}

function startText({ url }: { url: string }, always: string | undefined): string {
  const how = always === undefined
    ? "which fails as the last user text or the model id requests"
    : `which always answers with ${always}`;
  return `Fault server at ${url}, ${how}. As an upstream:\n` +
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
