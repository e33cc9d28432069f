/**
 * A process that writes entries to a journal, for tests that kill it or remove its disk: `journal_writer.ts PATH
 * COUNT`. Prints `acked ID` after each write, or `refused ID` and continues; three refusals end it.
 */
import { openJournal } from "../../../lib/store/outage/journal.ts";
import { entry } from "../behaviours_ledger.ts";

const [path = "", count = "0"] = Deno.args;
const journal = await openJournal(path, { maxEntries: 1e6, log: () => {} });
let refused = 0;
for (let index = 0; index < Number(count) && refused < 3; index++) {
  let how = "acked";
  try {
    await journal.append([entry({ id: `w${index}` }), entry({ id: `w${index}b`, cost: 2n ** 62n + BigInt(index) })]);
  } catch {
    how = "refused";
    refused++;
  }
  await Deno.stdout.write(new TextEncoder().encode(`${how} w${index}\n`));
}
await journal.close();
