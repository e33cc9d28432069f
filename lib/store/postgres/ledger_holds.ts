/** Makes holds in the database. Holds that are requested concurrently are decided in order, by one statement. */
import { dayOf } from "../days.ts";
import { assertHold } from "../entry_row.ts";
import type { BudgetClaim, Hold, HoldAnswer } from "../ledger.ts";
import { countsAgainst } from "../hold_row.ts";
import type { Sql } from "./client.ts";
import { retryConflicts } from "./ledger_retry.ts";
import { holdRow } from "./ledger_rows.ts";
import { assertInstant, assertTexts } from "./ledger_texts.ts";

/** Maximum number of holds of one statement. */
const HOLDS_PER_STATEMENT = 256;

interface PendingHold {
  hold: Hold;
  answered: PromiseWithResolvers<HoldAnswer>;
}

/** A key, group or end user to lock. */
interface Account {
  name: string;
  /** True if a hold must fit its budget; otherwise holds only add to its held amount. */
  is_claimed: boolean;
}

/**
 * A key, group or end user, and the first day of a period. `place` is an index that counts from 1, as in SQL arrays.
 */
interface Spender {
  place: number;
  scope: BudgetClaim["scope"];
  id: string;
  since: number;
}

/** Result of `ledger_hold` for one hold. `entered`: its request is in the ledger already. */
type HoldOutcome =
  | { place: number; outcome: "held" | "entered" }
  | { place: number; outcome: "refused"; claim: number; room: string; on_hold: string };

/**
 * Creates the function `LedgerStore.hold`.
 * @param serverAhead returns the milliseconds by which the server's clock is ahead of this node's
 */
export function openHolding(
  sql: Sql,
  serverAhead: () => Promise<bigint>,
): (hold: Hold) => Promise<HoldAnswer> {
  let waiting: PendingHold[] = [];
  let running = false;

  async function run(): Promise<void> {
    running = true;
    // Waits one microtask, so that holds that are requested in the same turn of the event loop share the statement.
    await Promise.resolve();
    while (waiting.length > 0) {
      const batch = takeBatch();
      try {
        await decide(batch);
      } catch (error) {
        for (const { answered } of batch) answered.reject(error);
      }
    }
    running = false;
  }

  /** Takes the next holds, at most one for each request: a second hold of the same request waits for the next batch. */
  function takeBatch(): PendingHold[] {
    const batch = new Map<string, PendingHold>();
    const remaining: PendingHold[] = [];
    for (const request of waiting) {
      if (batch.size < HOLDS_PER_STATEMENT && !batch.has(request.hold.id)) batch.set(request.hold.id, request);
      else remaining.push(request);
    }
    waiting = remaining;
    return [...batch.values()];
  }

  async function decide(batch: readonly PendingHold[]): Promise<void> {
    const ahead = await serverAhead();
    const holds = batch.map(({ hold }) => hold);
    const [accounts, spenders, rows] = [accountsOf(holds), spendersOf(holds), holdRows(holds, ahead)]
      .map((rows) => JSON.stringify(rows));
    const outcomes = await retryConflicts(() =>
      sql<HoldOutcome[]>`
        SELECT * FROM ledger_hold(${accounts ?? ""}::text::json, ${spenders ?? ""}::text::json, ${
        rows ?? ""
      }::text::json)`
    );
    const answers = new Map(outcomes.map((each) => [each.place, each]));
    for (const [index, { hold, answered }] of batch.entries()) {
      const answer = answers.get(index + 1);
      switch (answer?.outcome) {
        case "held":
          answered.resolve({ held: true });
          break;
        case "refused":
          answered.resolve(refusal(hold, answer));
          break;
        case "entered":
          answered.reject(new RangeError(`Cannot hold for "${hold.id}": the request is in the ledger already`));
          break;
        case undefined:
          answered.reject(new Error(`Cannot hold for "${hold.id}": the database returned nothing`));
      }
    }
  }

  return async (hold) => {
    assertHold(hold);
    assertTexts(`hold for "${hold.id}"`, [
      hold.id,
      hold.keyId,
      hold.group,
      hold.model,
      ...hold.claims.map(({ id }) => id),
    ]);
    for (const time of [hold.at, hold.leaseUntil]) assertInstant(`hold for "${hold.id}"`, time);
    const request = { hold, answered: Promise.withResolvers<HoldAnswer>() };
    waiting.push(request);
    if (!running) void run();
    return await request.answered.promise;
  };
}

function refusal({ claims }: Hold, { claim: place, room, on_hold }: HoldOutcome & { outcome: "refused" }): HoldAnswer {
  const claim = claims[place - 1];
  if (claim === undefined) throw new Error("Cannot hold: the database returned an unknown budget");
  return { held: false, claim, available: BigInt(room), onHold: BigInt(on_hold) };
}

function accountsOf(holds: readonly Hold[]): Account[] {
  return holds.flatMap(({ keyId, group, claims }) => [
    { name: `key:${keyId}`, is_claimed: false },
    { name: `group:${group}`, is_claimed: false },
    ...claims.map(({ scope, id }) => ({ name: `${scope}:${id}`, is_claimed: true })),
  ]);
}

function spendersOf(holds: readonly Hold[]): Spender[] {
  const spenders = new Map<string, Spender>();
  for (const { scope, id, since } of holds.flatMap(({ claims }) => claims)) {
    const name = spenderName({ scope, id, since });
    if (!spenders.has(name)) spenders.set(name, { place: spenders.size + 1, scope, id, since });
  }
  return [...spenders.values()];
}

/** Returns the holds as rows, with the budgets that they must fit and the spenders to whose held amounts they add. */
function holdRows(holds: readonly Hold[], ahead: bigint): object[] {
  const spenders = spendersOf(holds);
  const places = new Map(spenders.map((spender) => [spenderName(spender), spender.place]));
  return holds.map((hold, index) => {
    const day = dayOf(hold.at);
    return {
      ...holdRow(hold),
      place: index + 1,
      day,
      lease_until: String(BigInt(hold.leaseUntil) + ahead),
      against: hold.claims.map((claim) => places.get(spenderName(claim))),
      budgets: hold.claims.map(({ budget }) => String(budget)),
      adds_to: spenders
        .filter((spender) => countsAgainst(hold, spender))
        .map(({ place }) => place),
    };
  });
}

function spenderName({ scope, id, since }: Pick<BudgetClaim, "scope" | "id" | "since">): string {
  return JSON.stringify([scope, id, since]);
}
