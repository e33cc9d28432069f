/**
 * A process that writes entries to a journal, for tests that kill it or remove its disk: `journal_writer.ts PATH
 * COUNT`. Prints `acked ID` after each write, or `refused ID` and continues; three refusals end it. After a refusal it
 * prints `failed ID` if a test write fails, too.
 */
import { openJournal } from "../../../lib/store/outage/journal.ts";
import { entry } from "../behaviours_ledger.ts";

const [path = "", count = "0"] = Deno.args;
const journal = await openJournal(path, { maxEntries: 1e6, log: () => {} });
async function say(text: string): Promise<void> {
  await Deno.stdout.write(new TextEncoder().encode(`${text}\n`));
}

let refused = 0;
for (let index = 0; index < Number(count) && refused < 3; index++) {
  let how = "acked";
  try {
    await journal.append([entry({ id: `w${index}` }), entry({ id: `w${index}b`, cost: 2n ** 62n + BigInt(index) })]);
  } catch {
    how = "refused";
    refused++;
    await journal.append([]).catch(() => say(`failed w${index}`));
  }
  await say(`${how} w${index}`);
}
await journal.close();
