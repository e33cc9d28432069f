/**
 * Calls one TLS host three times in a separate process, because the trusted authorities are set at the start of a
 * process.
 */
import { createTransportSelector } from "../../lib/upstreams/select_transport.ts";
import { request } from "./transports.ts";

const [url = ""] = Deno.args;
const results: string[] = [];
const way = createTransportSelector({
  url,
  configured: "auto",
  env: () => undefined,
  onFallback: (reason) => void results.push(reason),
});
const transport = way.open();
for (let number = 0; number < 3; number++) {
  const incoming = await transport.send(request(url, { body: String(number) }));
  results.push(await incoming.text(100));
}
transport.close();
await Deno.stdout.write(new TextEncoder().encode(JSON.stringify(results)));
