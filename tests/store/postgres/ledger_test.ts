import { HAS_POSTGRES } from "../../support/databases.ts";
import { testLedger } from "../behaviours_ledger.ts";
import { testSearch } from "../behaviours_search.ts";
import { testSums } from "../behaviours_sums.ts";
import { withLedgers } from "./ledgers.ts";

if (HAS_POSTGRES) {
  testSearch("the Postgres ledger", (test) => withLedgers(1, ([ledger]) => test(ledger)));
  testSums("the Postgres ledger", (test) => withLedgers(1, ([ledger]) => test(ledger)));
  testLedger("the Postgres ledger", (test) => withLedgers(1, ([ledger]) => test(ledger)));
}
