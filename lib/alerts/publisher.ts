/** Stores alerts for delivery: in the store, or in memory while it is unreachable. */
import { createHash } from "node:crypto";
import { settlesWithin } from "../abort.ts";
import type { AlertsConfig } from "../config.ts";
import { DAY_MS } from "../store/days.ts";
import type { AddedAlert, AlertStore, NewAlert } from "../store/alerts.ts";
import type { AlertBody, AlertDraft } from "./event.ts";

/** Time for which subjects are remembered by default, in milliseconds. */
const REMEMBER_MS = 30 * DAY_MS;

/** Time within which several nodes may see the same event, in milliseconds. */
const SAME_EVENT_MS = 60_000;

/** Longest wait for the store, in milliseconds. */
const STORE_TIMEOUT_MS = 3_000;

/** Dependencies and settings of `publish`. */
export interface PublisherParts {
  store: AlertStore;
  /** Stores alerts while the store is unreachable. */
  fallback: AlertStore;
  /** Types to send; absent: all. */
  events: AlertsConfig["events"];
  /** Unix time in milliseconds. */
  now: () => number;
}

/**
 * Stores an alert unless its subject is already in this state. Nodes that see the same event within a minute create the
 * same id, so that a receiver can recognize duplicates that were sent while the store was unreachable.
 * @param isSent false: the alert only changes the state of its subject, and is not sent
 */
export async function publish(draft: AlertDraft, parts: PublisherParts, isSent = true): Promise<void> {
  const { store, fallback, events, now } = parts;
  const { type, subject, begins, repeatMs, text, data } = draft;
  const at = now();
  const isWanted = isSent && (events === undefined || events.includes(type));
  const add = (to: AlertStore) =>
    addUnderFreeId(to, (count) => {
      const id = idOf([type, subject, Math.floor(at / SAME_EVENT_MS), count]);
      const body: AlertBody = { id, type, created: new Date(at).toISOString(), text, data };
      const rememberUntil = draft.rememberUntil ?? at + REMEMBER_MS;
      return {
        id,
        at,
        body: JSON.stringify(body),
        subject,
        begins,
        ...(repeatMs !== undefined && { repeatMs }),
        rememberUntil,
        isSent: isWanted,
      };
    });
  // A condition whose start was stored in memory ends there, too.
  if (!begins && await add(fallback) === "added") return;
  const isStored = await settlesWithin(STORE_TIMEOUT_MS, add(store)).catch(() => false);
  if (!isStored) await add(fallback);
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
