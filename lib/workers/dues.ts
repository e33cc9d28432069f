/** What the requests of one worker have taken and not given back: when the worker ends before them, the owner does. */
import type { Limiter } from "../limits/limiter.ts";
import { lostEntry } from "../store/sqlite/accounts.ts";
import type { Hold, LedgerStore } from "../store/ledger.ts";
import type { Limits } from "./contract.ts";

/** What is taken in a worker's name. */
export interface Dues {
  /** Methods of the ledger and of the limiter that keep note, in the place of their own. */
  readonly ledger: Pick<LedgerStore, "hold" | "append" | "expire">;
  readonly limiter: Pick<Limits, "take" | "end" | "undo">;
  /** Gives everything back: requests with holds are entered as lost. Returns how many of these there were. */
  settle(): Promise<number>;
}

/** Begins with nothing taken. `now`: Unix time in milliseconds. */
export function createDues(
  { ledger, limiter, now }: {
    ledger: Pick<LedgerStore, "hold" | "append" | "expire">;
    limiter: Pick<Limiter, "take" | "end" | "undo">;
    now: () => number;
  },
): Dues {
  const holds = new Map<string, Hold>();
  const taken = new Set<string>();
  return {
    ledger: {
      async hold(hold) {
        // Before the answer: should there be none, it may be held all the same.
        holds.set(hold.id, hold);
        const answer = await ledger.hold(hold);
        if (!answer.held) holds.delete(hold.id);
        return answer;
      },
      async append(entries) {
        const fresh = await ledger.append(entries);
        for (const { id } of entries) holds.delete(id);
        return fresh;
      },
      // Those of other workers that it finds are entered again when these end, and are not new then.
      async expire(now) {
        const ids = await ledger.expire(now);
        for (const id of ids) holds.delete(id);
        return ids;
      },
    },
    limiter: {
      async take(request) {
        taken.add(request.id);
        const taking = await limiter.take(request);
        if (!taking.admitted) taken.delete(request.id);
        return taking;
      },
      end(id, tokens) {
        taken.delete(id);
        return limiter.end(id, tokens);
      },
      undo(id) {
        taken.delete(id);
        return limiter.undo(id);
      },
    },
    async settle() {
      const lost = [...holds.values()].map((hold) => lostEntry(hold, now()));
      // As requests that failed: without a token.
      const freed = [...taken].map((id) => limiter.end(id, 0));
      holds.clear();
      taken.clear();
      await Promise.all([lost.length > 0 ? ledger.append(lost) : undefined, ...freed]);
      return lost.length;
    },
  };
}
