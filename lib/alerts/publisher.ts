/** Stores alerts for delivery: in the store, or in memory while it is unreachable. */
import { createHash } from "node:crypto";
import { settlesWithin } from "../abort.ts";
import type { AlertsConfig } from "../config.ts";
import { DAY_MS } from "../store/days.ts";
import type { AddedAlert, AlertStore, NewAlert } from "../store/alerts.ts";
import type { AlertBody, AlertDraft } from "./event.ts";

/** Time for which subjects are remembered by default, in milliseconds. */
const REMEMBER_MS = 30 * DAY_MS;

/** Retention of delivered alerts, in milliseconds. */
const RETENTION_MS = 30 * DAY_MS;

/** Time within which several nodes may see the same event, in milliseconds. */
const SAME_EVENT_MS = 60_000;

/** Longest wait for the store, in milliseconds. */
const STORE_TIMEOUT_MS = 3_000;

/** Dependencies and settings of a publisher, which a reload may change. */
export interface PublisherParts {
  store: AlertStore;
  /** Types to send; absent: all. */
  events: AlertsConfig["events"];
  /** Unix time in milliseconds. */
  now: () => number;
}

/** Adds an alert to a store. @param isSent false: only the state of its subject changes */
type Adding = (to: AlertStore, isSent: boolean) => Promise<AddedAlert>;

/** Stores alerts for delivery: in the store, or in memory while it is unreachable. */
export class Publisher {
  readonly #fallback: AlertStore;
  /**
   * Ends of conditions that are not in the store yet, by subject. Until the store has an end, it ignores the next
   * start.
   */
  readonly #ends = new Map<string, { add: Adding; isSent: boolean }>();
  #minute = 0;
  /** The last type of each subject in this minute, and the number of times that it has changed. */
  readonly #changes = new Map<string, { type: string; count: number }>();

  /** @param fallback stores alerts while the store is unreachable */
  constructor(fallback: AlertStore) {
    this.#fallback = fallback;
  }

  /**
   * Stores an alert unless its subject is already in this state. Nodes that see the same event within a minute create
   * the same id, so that a receiver can recognize duplicates that were sent while the store was unreachable.
   * @param isSent false: the alert only changes the state of its subject, and is not sent
   */
  async publish(draft: AlertDraft, parts: PublisherParts, isSent = true): Promise<void> {
    const { subject } = draft;
    const isWanted = isSent && (parts.events === undefined || parts.events.includes(draft.type));
    const add = this.#adding(draft, parts.now());
    if (!draft.begins) {
      // A condition whose start was stored in memory ends there, too.
      const isDone = await add(this.#fallback, isWanted) === "added";
      this.#ends.set(subject, { add, isSent: isWanted && !isDone });
      await this.#recordEnd(subject, parts);
      return;
    }
    if (await this.#recordEnd(subject, parts) && await isStored(add(parts.store, isWanted))) return;
    await add(this.#fallback, isWanted);
    // The condition has started again, so an alert about its earlier end would be misleading.
    const end = this.#ends.get(subject);
    if (end !== undefined) end.isSent = false;
  }

  /** Deletes old alerts and subjects, in memory too. @throws the store's errors */
  async prune({ store, now }: PublisherParts): Promise<void> {
    const times = { until: now() - RETENTION_MS, now: now() };
    await this.#fallback.prune(times);
    await store.prune(times);
  }

  /** Stores the ends that the store missed. */
  async retry(parts: PublisherParts): Promise<void> {
    for (const subject of this.#ends.keys()) if (!await this.#recordEnd(subject, parts)) return;
  }

  /** Stores the end of a subject, if the store has missed one. Returns false if that fails. */
  async #recordEnd(subject: string, { store }: PublisherParts): Promise<boolean> {
    const end = this.#ends.get(subject);
    if (end === undefined) return true;
    if (!await isStored(end.add(store, end.isSent))) return false;
    this.#ends.delete(subject);
    return true;
  }

  #adding({ type, subject, begins, repeatMs, text, data, rememberUntil }: AlertDraft, at: number): Adding {
    const minute = Math.floor(at / SAME_EVENT_MS);
    const changes = this.#countChange(type, { subject, minute });
    return (to, isSent) =>
      addUnderFreeId(to, (count) => {
        const id = idOf([type, subject, minute, changes + count]);
        const body: AlertBody = { id, type, created: new Date(at).toISOString(), text, data };
        return {
          id,
          at,
          body: JSON.stringify(body),
          subject,
          begins,
          ...(repeatMs !== undefined && { repeatMs }),
          rememberUntil: rememberUntil ?? at + REMEMBER_MS,
          isSent,
        };
      });
  }

  /**
   * Counts how often the type of a subject has changed in this minute. So two outages within a minute have different
   * ids, even if only one of them is in the store.
   */
  #countChange(type: string, { subject, minute }: { subject: string; minute: number }): number {
    if (minute !== this.#minute) this.#changes.clear();
    this.#minute = minute;
    const last = this.#changes.get(subject);
    const count = last === undefined ? 0 : last.count + (last.type === type ? 0 : 1);
    this.#changes.set(subject, { type, count });
    return count;
  }
}

/** Returns false if the store does not answer in time. */
async function isStored(adding: Promise<AddedAlert>): Promise<boolean> {
  return await settlesWithin(STORE_TIMEOUT_MS, adding).catch(() => false);
}

/** Adds an alert. If its id exists, tries other ids, which `alert` makes from a count. */
async function addUnderFreeId(to: AlertStore, alert: (count: number) => NewAlert): Promise<AddedAlert> {
  for (let count = 0;; count++) {
    const added = await to.add(alert(count));
    if (added !== "taken") return added;
  }
}

function idOf(facts: readonly (string | number)[]): string {
  return `evt_${createHash("sha256").update(facts.join("\n")).digest("hex").slice(0, 24)}`;
}
