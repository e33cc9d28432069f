/**
 * Compares the ledger with what really happened. Checked after every step or at the end of a run:
 * - I1 no entry has a fault by the audit; I2 the rest is the budget minus charges and holds
 * - I3 the held amount is the sum of open holds, none remains at the end, and none expires during its lease
 * - I4 one hold and one end per request, and no charge above the hold; I5 the charge is recomputed from the entry alone
 * - I6 every complete answer is in the ledger, and every charge for a complete answer was seen complete
 * - I7 failures are free; I8 reported tokens are entered; I9 one charge per id; I10 no budget is ever exceeded
 * - I11 the order of entries does not matter; I12 no gaps, nothing changes
 * - I13 a price change does not affect running requests; I15 costs grow with tokens and are additive; I16 sums equal
 *   their entries, after a crash too
 * - I17 nothing stays held after any failing call; I18 each request has the expected entry
 * - I19 an empty budget starts nothing, and a request that fits is not refused
 * - I20 and `sums`: bills, explanations and the audit agree with the entries (`reports_checker.ts`)
 *
 * Elsewhere: I14 prices (`money_test.ts`) and int64 (`tests/store/behaviours_ledger.ts`), I20 flipped bits
 * (`tests/e2e/billing/flipped_bits_test.ts`).
 */
import { costOfTokens, PRICE_CLASSES } from "../../../lib/billing/price.ts";
import { checkEntry, recomputeCharge } from "../../../lib/billing/reports/audit_entry.ts";
import type {
  BilledTokens,
  BudgetClaim,
  Ending,
  Hold,
  HoldAnswer,
  KeptEntry,
  LedgerStore,
  PriceSheet,
} from "../../../lib/store/ledger.ts";
import { openMemoryStore } from "../../../lib/store/sqlite/memory.ts";
import { costBy } from "./shop.ts";
import { tokensOf, type Truth } from "./truth.ts";
import { availableIn } from "../../support/available.ts";

/** Something that must never be. */
export class Violation extends Error {
  override readonly name = "Violation";

  constructor(readonly invariant: string, message: string) {
    super(`${invariant}: ${message}`);
  }
}

/** @throws {Violation} if it is not so */
export function must(condition: boolean, invariant: string, message: () => string): asserts condition {
  if (!condition) throw new Violation(invariant, message());
}

const DAY_MS = 86_400_000;
const PAGE = 500;
/** Lifetime of a hold without a renewal. */
const LEASE_MS = 60_000;

/** Ends of answers that were whole. */
const WHOLE: ReadonlySet<Ending> = new Set([
  "end",
  "stop_sequence",
  "length",
  "tool_use",
  "refusal",
  "pause",
  "done",
  "partial",
]);

/** The checker of a run. */
export class Checker {
  readonly entries = new Map<string, KeptEntry>();
  readonly #disk: { readonly ledger: LedgerStore };
  readonly #truths = new Map<string, Truth>();
  /** Requests whose client still listens. */
  readonly #watched = new Set<Truth>();
  /** Charged amounts by owner and day. */
  readonly #charged = new Map<string, Map<number, bigint>>();
  readonly #budgets = new Map<string, BudgetClaim>();
  readonly #texts: string[] = [];
  readonly #monotonic: () => number;
  #holds: readonly Hold[] = [];
  /** The process that lives. */
  #process = 0;

  constructor(disk: { readonly ledger: LedgerStore }, monotonic: () => number) {
    this.#disk = disk;
    this.#monotonic = monotonic;
  }

  /** A request arrived. */
  arrived(truth: Truth): void {
    this.#truths.set(truth.id, truth);
    this.#watched.add(truth);
    for (const claim of truth.budgets) this.#budgets.set(`${claim.scope}:${claim.id}:${claim.since}`, claim);
  }

  /** A process died: all of its requests have ended. */
  died(): void {
    this.#process++;
    for (const truth of this.#watched) truth.over = true;
  }

  /** The store answered a hold that was requested at the last seen sums. */
  answered({ claims, amount, id }: Hold, answer: HoldAnswer): void {
    const against = claims.find((claim) => this.#chargedSince(claim) + this.#heldSince(claim) + amount > claim.budget);
    must(!answer.held || against === undefined, "I10", () => `hold of ${id} was granted against ${show(against)}`);
    must(answer.held || against !== undefined, "I19", () => `hold of ${id} was refused although it fits`);
  }

  /** True if something was held for a request when the store was read last. */
  isHeld(id: string): boolean {
    return this.#holds.some((hold) => hold.id === id);
  }

  /** Reads and checks everything new in the store. */
  async readStore(): Promise<void> {
    for (;;) {
      const found = await this.#disk.ledger.entries({ after: this.entries.size, limit: PAGE });
      for (const entry of found) this.#take(entry);
      if (found.length < PAGE) break;
    }
    this.#holds = await this.#disk.ledger.holds();
    this.#checkHolds();
    this.#checkBudgets();
  }

  /** Checks what clients received. */
  checkClients(): void {
    for (const truth of this.#watched) {
      if (truth.terminal !== undefined) this.#checkTerminal(truth, truth.terminal);
      if (truth.over) this.#watched.delete(truth);
    }
  }

  /** Compares the rests that the store reports. */
  async checkLeft(): Promise<void> {
    for (const claim of this.#budgets.values()) {
      const left = await availableIn(this.#disk.ledger, claim);
      const expected = claim.budget - this.#chargedSince(claim) - this.#heldSince(claim);
      must(left === expected, "I2", () => `${left} is said to be left of ${show(claim)}, and ${expected} is`);
    }
  }

  /**
   * Checks the end of a run.
   * @param lastProcess the process that survived
   * @param excused requests without charge whose entries were given up while the store failed
   */
  async checkEnd({ lastProcess, excused }: { lastProcess: number; excused: ReadonlySet<string> }): Promise<void> {
    await this.readStore();
    this.checkClients();
    await this.checkLeft();
    must(this.#holds.length === 0, "I3", () => `${show(this.#holds)} are held though nothing runs`);
    for (const truth of this.#truths.values()) {
      const entry = this.entries.get(truth.id);
      const died = truth.process < lastProcess;
      must(
        entry !== undefined || (truth.terminal === undefined && (died || excused.has(truth.id))),
        "I18",
        () => `${truth.id} has no entry: ${show(truth)}`,
      );
      const isSeen = truth.terminal !== undefined || truth.left || died;
      must(entry === undefined || !WHOLE.has(entry.ending) || isSeen, "I6", () => `${truth.id} was charged unseen`);
    }
    await this.#checkSums();
    await this.#checkUnchanged();
    await this.#checkOrder();
  }

  #take(entry: KeptEntry): void {
    const { id, seq } = entry;
    must(seq === this.entries.size + 1, "I12", () => `${id} has seq ${seq} after ${this.entries.size}`);
    must(!this.entries.has(id), "I9", () => `${id} was entered twice`);
    const truth = this.#truths.get(id);
    must(truth !== undefined, "I18", () => `${id} was entered and never came in`);
    this.entries.set(id, entry);
    this.#texts.push(show(entry));
    checkFacts(entry, truth);
    checkEnding(entry, truth);
    checkMoney(entry, truth);
    const { process, takenAt = 0 } = truth;
    const isEarly = process === this.#process && this.#monotonic() < takenAt + LEASE_MS;
    must(entry.ending !== "lost" || !isEarly, "I3", () => `the hold of ${id} was void before its lease was over`);
    const [fault] = checkEntry(entry);
    must(fault === undefined, "I1", () => `${id}: ${fault?.message}`);
    const day = Math.floor(entry.at / DAY_MS);
    for (const name of [`key:${entry.keyId}`, `group:${entry.group}`]) {
      let days = this.#charged.get(name);
      if (days === undefined) this.#charged.set(name, days = new Map());
      days.set(day, (days.get(day) ?? 0n) + entry.cost);
    }
  }

  #chargedSince({ scope, id, since }: BudgetClaim, until = Infinity): bigint {
    let sum = 0n;
    for (const [day, cost] of this.#charged.get(`${scope}:${id}`) ?? []) {
      if (day >= since && day < until) sum += cost;
    }
    return sum;
  }

  #heldSince({ scope, id, since }: BudgetClaim, until = Infinity): bigint {
    let sum = 0n;
    for (const { keyId, group, at, amount } of this.#holds) {
      const day = Math.floor(at / DAY_MS);
      if ((scope === "key" ? keyId : group) === id && day >= since && day < until) sum += amount;
    }
    return sum;
  }

  #checkHolds(): void {
    const seen = new Set<string>();
    for (const { id, amount, leaseUntil, at } of this.#holds) {
      const truth = this.#truths.get(id);
      must(truth !== undefined, "I18", () => `${id} is held for nobody`);
      must(!seen.has(id), "I4", () => `${id} is held twice`);
      seen.add(id);
      must(!this.entries.has(id), "I4", () => `${id} is held after its end`);
      must(amount === truth.wished, "I4", () => `${amount} is held for ${id}, which wished ${truth.wished}`);
      // The wall clock may have jumped by days since then, repeatedly.
      must(leaseUntil < at + truth.forMs + 365 * DAY_MS, "I3", () => `the lease of ${id} has no end`);
    }
  }

  #checkBudgets(): void {
    for (const claim of this.#budgets.values()) {
      const charged = this.#chargedSince(claim, claim.until);
      const held = this.#heldSince(claim, claim.until);
      must(charged + held <= claim.budget, "I10", () => `${charged} charged, ${held} held of ${show(claim)}`);
    }
  }

  #checkTerminal(truth: Truth, { tokens, cost }: { tokens: BilledTokens; cost: bigint }): void {
    const entry = this.entries.get(truth.id);
    must(entry !== undefined, "I6", () => `${truth.id} was seen whole and is not in the ledger`);
    // The hold had expired before the end: the operator pays.
    if (entry.ending === "lost" && cost === 0n) return;
    must(WHOLE.has(entry.ending), "I6", () => `${truth.id} was seen whole and is entered as ${entry.ending}`);
    must(
      sameTokens(entry.tokens, tokens),
      "I8",
      () => `${truth.id} was told ${show(tokens)}, not ${show(entry.tokens)}`,
    );
    must(entry.cost === cost, "I8", () => `${truth.id} was told ${cost}, and ${entry.cost} is charged`);
  }

  async #checkSums(): Promise<void> {
    const expected = new Map<string, bigint[]>();
    for (const entry of this.entries.values()) {
      const { at, keyId, group, model, tokens, cost, overrun, ending, images } = entry;
      const name = [Math.floor(at / DAY_MS), keyId, group, model].join(" ");
      const failed = ending === "failed" || ending === "refused" || ending === "lost";
      const { prompt, input_cache_read, input_cache_write_5m, input_cache_write_1h, completion, reasoning } = tokens;
      const counts = [1, Number(failed), prompt, input_cache_read, input_cache_write_5m, input_cache_write_1h];
      const row = [...counts, completion, reasoning, images].map(BigInt).concat(cost, overrun);
      expected.set(name, row.map((value, i) => value + (expected.get(name)?.[i] ?? 0n)));
    }
    const days = await this.#disk.ledger.days(0);
    must(days.length === expected.size, "I16", () => `${days.length} sums per day are kept, not ${expected.size}`);
    for (const { day, keyId, group, model, requests, failed, tokens, images, cost, overrun } of days) {
      const name = [day, keyId, group, model].join(" ");
      const { prompt, input_cache_read, input_cache_write_5m, input_cache_write_1h, completion, reasoning } = tokens;
      const counts = [requests, failed, prompt, input_cache_read, input_cache_write_5m, input_cache_write_1h];
      const row = [...counts, completion, reasoning, images].map(BigInt).concat(cost, overrun);
      must(show(row) === show(expected.get(name)), "I16", () => `the sums of ${name} are ${show(row)}`);
    }
  }

  async #checkUnchanged(): Promise<void> {
    let { seq: after } = await this.#disk.ledger.start();
    for (;;) {
      const found = await this.#disk.ledger.entries({ after, limit: PAGE });
      for (const entry of found) {
        must(show(entry) === this.#texts[after++], "I12", () => `${entry.id} has changed since it was entered`);
      }
      if (found.length < PAGE) break;
    }
    must(after === this.entries.size, "I12", () => `${this.entries.size - after} entries are gone`);
  }

  /** A new ledger with the same entries in reverse order has the same sums. */
  async #checkOrder(): Promise<void> {
    const other = openMemoryStore().ledger;
    await other.append([...this.entries.values()].reverse());
    for (const claim of this.#budgets.values()) {
      const [here, there] = [await availableIn(this.#disk.ledger, claim), await availableIn(other, claim)];
      must(here === there, "I11", () => `${here} is left of ${show(claim)}, and ${there} in another order`);
    }
  }
}

function checkFacts(entry: KeptEntry, { at, customer, ware, answering, endpoint, attempts, id }: Truth): void {
  const isSame = entry.at === at && entry.keyId === customer.keyId && entry.group === customer.group &&
    entry.endpoint === endpoint;
  must(isSame, "I18", () => `${id} is another request than the one that came in`);
  // The final model of a lost request is unknown.
  const model = entry.ending === "lost" ? ware.model.id : answering.ware.model.id;
  const isModel = entry.model === model || (entry.model === "" && entry.ending === "refused");
  must(isModel, "I18", () => `${id} was answered by ${model}, not by ${entry.model}`);
  if (entry.ending === "lost") return;
  must(entry.attempts === attempts.length, "I18", () => `${id} called ${attempts.length} upstreams`);
  must(entry.upstream === (attempts.at(-1)?.upstream ?? ""), "I18", () => `${id} ended at another upstream`);
}

function checkEnding({ ending, tokens, cost, sheet }: KeptEntry, truth: Truth): void {
  const { id, attempts, usage, left, got, prompt, sentWhenLeft, repeats } = truth;
  if (WHOLE.has(ending) && repeats) {
    must(cost === 0n && attempts.length === 0, "I9", () => `${id} repeats another request and costs ${cost}`);
    return;
  }
  if (WHOLE.has(ending)) {
    must(
      attempts.at(-1)?.outcome === "complete" && usage !== undefined,
      "I7",
      () => `${id} is charged and never ended`,
    );
    must(sameTokens(tokens, usage), "I8", () => `${id} is charged for ${show(tokens)}, not ${show(usage)}`);
    return;
  }
  if (ending === "client_disconnected") {
    must(left && got, "I7", () => `${id} has no client that disconnected`);
    const isReceived = tokens.completion === sentWhenLeft && tokens.prompt === prompt;
    must(isReceived, "I8", () => `${id} is charged for ${show(tokens)}, and its client got ${sentWhenLeft}`);
    return;
  }
  must(cost === 0n && sheet === undefined, "I7", () => `${id} ended as ${ending} and costs ${cost}`);
  must(Object.values(tokens).every((count) => count === 0), "I7", () => `${id} ended as ${ending} with tokens`);
  const isRefused = attempts.length === 0 && !(repeats && ending === "failed");
  must(ending === "lost" || (ending === "refused") === isRefused, "I18", () => `${id} is entered as ${ending}`);
}

function checkMoney(entry: KeptEntry, { id, answering, customer, wished, budgets }: Truth): void {
  const { tokens, cost, held, overrun, sheet, ending } = entry;
  const again = recomputeCharge(entry);
  must(again.cost === cost && again.overrun === overrun, "I5", () => `${id} costs ${again.cost}, not ${cost}`);
  must(held === 0n || (held === wished && cost <= held), "I4", () => `${id} is charged ${cost} of ${held} held`);
  const isCharged = WHOLE.has(ending) || ending === "client_disconnected";
  must(
    isCharged === (sheet !== undefined),
    "I5",
    () => `${id} is entered as ${ending} and its prices are ${show(sheet)}`,
  );
  if (sheet === undefined) return;
  const full = costBy(answering.picos, { tokens, millionths: customer.millionths });
  checkShape(tokens, { id, sheet });
  must(cost + overrun === full, "I13", () => `${id} costs ${cost} and ${overrun}, and ${full} by its prices`);
  const needsHold = budgets.length > 0 && wished > 0n;
  must(!needsHold || held === wished, "I4", () => `${id} was served until ${ending} without a hold`);
  must(overrun === 0n || cost === held, "I4", () => `the house pays for ${id} although something is left of the hold`);
}

function checkShape(tokens: BilledTokens, { id, sheet }: { id: string; sheet: PriceSheet }): void {
  const whole = costOfTokens(tokens, sheet);
  for (const name of PRICE_CLASSES) {
    const more = costOfTokens({ ...tokens, [name]: tokens[name] + 1 }, sheet);
    must(more >= whole, "I15", () => `one more token of ${name} makes ${id} cheaper`);
    const half = Math.floor(tokens[name] / 2);
    const sum = costOfTokens({ ...tokens, [name]: half }, sheet) +
      costOfTokens({ ...tokensOf(0, 0), [name]: tokens[name] - half }, sheet);
    must(sum === whole, "I15", () => `the parts of ${id} cost ${sum}, the whole ${whole}`);
  }
}

function sameTokens(a: BilledTokens, b: BilledTokens): boolean {
  return a.prompt === b.prompt && a.completion === b.completion && a.reasoning === b.reasoning &&
    a.input_cache_read === b.input_cache_read && a.input_cache_write_5m === b.input_cache_write_5m &&
    a.input_cache_write_1h === b.input_cache_write_1h;
}

/** Anything as text, with its amounts. */
function show(value: unknown): string {
  return JSON.stringify(value, (name, member) => {
    if (typeof member === "bigint") return `${member}n`;
    // The identifying members of a request.
    return ["customer", "ware", "meter", "claims", "others"].includes(name) ? undefined : member;
  });
}
