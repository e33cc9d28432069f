/** A gateway in front of one TLS upstream, in a process of its own: which authorities are trusted is set at its start. */
import { prompt } from "../../upstream/replies.ts";
import { oneModel, startGateway } from "../../support/gateway.ts";

const [url = "", count = "0"] = Deno.args;
await using gateway = startGateway(oneModel("chat", url, {
  // A busy machine takes long for this many handshakes.
  timeouts: { connect_ms: 60_000, first_byte_ms: 60_000 },
}));

/** Resolves to true if a first event arrives; the rest of the stream is not read. */
async function start(): Promise<boolean> {
  const response = await gateway.ask("chat", prompt("chat", { stream: true }));
  const reader = response.body?.getReader();
  const { value } = await reader?.read() ?? {};
  const came = response.status === 200 && value !== undefined;
  if (came) started++;
  leave.push(() => void reader?.cancel());
  return came;
}

const leave: (() => void)[] = [];
let started = 0;
const begun = performance.now();
await Promise.all(Array.from({ length: Number(count) }, start));
await Deno.stdout.write(new TextEncoder().encode(JSON.stringify({ started, ms: performance.now() - begun })));
for (const stop of leave) stop();
