import { HAS_POSTGRES } from "../../engines/engines.ts";
import { testLedger } from "../behaviours_ledger.ts";
import { withLedgers } from "./ledgers.ts";

if (HAS_POSTGRES) {
  testLedger("the Postgres ledger", (test) => withLedgers(1, ([ledger]) => test(ledger)));
}
