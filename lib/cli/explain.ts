/** `explain`: shows a request and how its price adds up, line by line. */
import type { Config } from "../config.ts";
import { explainRequest } from "../billing/reports/explain.ts";
import { explanationText } from "../billing/reports/explain_text.ts";
import type { Invocation } from "./arguments.ts";
import { jsonText, writeErr, writeOut } from "./output.ts";
import { withStore } from "./command_store.ts";

/** Prints the explanation of the request with an id, with or without `req_`. Returns 1 if there is none. */
export function explain(
  { config, operand: id, switches }: Pick<Invocation, "operand" | "switches"> & { config: Config },
): Promise<number> {
  return withStore(config, async ({ ledger, keys }) => {
    const explanation = await explainRequest(ledger, id, { keys, config });
    if (explanation === undefined) {
      writeErr(`Cannot explain the request "${id}": it is not in the ledger\n`);
      writeErr("Requests with a refused key are only in the log, and entries are deleted after ledger.keep_days\n");
      return 1;
    }
    writeOut(switches.has("json") ? jsonText(explanation) : explanationText(explanation));
    return 0;
  });
}
