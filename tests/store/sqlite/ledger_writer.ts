/**
 * A process that enters requests, for tests that kill it, watch it or remove its disk: `ledger_writer.ts FOLDER COUNT`.
 * Prints `acked ID` after each entry is durable, or `refused ID: why`, after which it removes the file `ballast` and
 * continues; three refusals end the writing. Before and after the removal it prints whether a test write succeeds. It
 * runs until its standard input ends.
 */
import { openSqliteStore } from "../../../lib/store/sqlite/store.ts";
import { entry, hold } from "../behaviours_ledger.ts";

const [folder = "", count = "0"] = Deno.args;
const encoder = new TextEncoder();

async function say(text: string): Promise<void> {
  await Deno.stdout.write(encoder.encode(`${text}\n`));
}

const { ledger, close } = openSqliteStore(`${folder}/sluice.db`, { own: true });
await ledger.hold(hold({ id: "open", amount: 5n }));
let refused = 0;
for (let index = 0; index < Number(count) && refused < 3; index++) {
  try {
    await ledger.append([entry({ id: `w${index}` })]);
    await say(`acked w${index}`);
  } catch (error) {
    refused++;
    await say(`refused w${index}: ${error instanceof Error ? error.message : error}`);
    const before = await isWritable();
    await Deno.remove(`${folder}/ballast`).catch(() => {});
    await say(`writable: ${before}, ${await isWritable()}`);
  }
}

async function isWritable(): Promise<boolean> {
  return await ledger.append([]).then(() => true, () => false);
}

for await (const _ of Deno.stdin.readable);
await close();
