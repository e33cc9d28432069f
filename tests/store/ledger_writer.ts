/**
 * A process that enters requests, for tests that end it or watch it: `ledger_writer.ts ADDRESS COUNT`. Says `ready` when it
 * owns the ledger and `acked ID` after each entry is durable; then stays until its standard input ends.
 */
import { openStore } from "../../lib/store/open.ts";
import { entry, hold } from "./behaviours_ledger.ts";

const [address = "", count = "0"] = Deno.args;
const { ledger, close } = openStore(address, { own: true });
const encoder = new TextEncoder();
Deno.stdout.writeSync(encoder.encode("ready\n"));
await ledger.hold(hold({ id: "open", amount: 5n }));
for (let index = 0; index < Number(count); index++) {
  await ledger.append([entry({ id: `w${index}` })]);
  Deno.stdout.writeSync(encoder.encode(`acked w${index}\n`));
}
for await (const _ of Deno.stdin.readable);
await close();
