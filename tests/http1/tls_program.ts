/** Calls one TLS upstream in a separate process, because the trusted authorities are set at the start of a process. */
import { createHttp1Transport } from "../../lib/upstreams/select_transport.ts";
import { request } from "../upstreams/transports.ts";

const [url = "", count = "1"] = Deno.args;
const transport = createHttp1Transport();

async function call(): Promise<string> {
  try {
    const incoming = await transport.send(request(url));
    return `${incoming.status} ${await incoming.text(100_000)}`;
  } catch (error) {
    return error instanceof Error ? `${error.name} ${"fault" in error ? error.fault : ""}` : String(error);
  }
}

const answers = await Promise.all(Array.from({ length: Number(count) }, call));
// Once more, on a connection that is there.
answers.push(await call());
transport.close();
await Deno.stdout.write(new TextEncoder().encode(JSON.stringify(answers)));
