/** Behaviour of every store for operators. */
import { assertEquals, assertRejects } from "@std/assert";
import type { KeyStore } from "../../lib/store/keys.ts";
import type { ChangeOrigin, ChangeRecord, OperatorStore } from "../../lib/store/operators.ts";
import { hash, key } from "./behaviours_keys.ts";

/** Parts of a store, and direct access to its tables. */
export interface OperatorParts {
  keys: KeyStore;
  operators: OperatorStore;
  /** Runs one statement. */
  run(statement: string): Promise<void>;
}

const ORIGIN: ChangeOrigin = { author: "admin_key", at: 5000, address: "192.0.2.1", requestId: "abc" };

/** A logged change without its number. */
function unnumbered({ seq: _, ...change }: ChangeRecord): Omit<ChangeRecord, "seq"> {
  return change;
}

const BEHAVIOURS: Record<string, (parts: OperatorParts) => Promise<void>> = {
  "logs each change of a key with the members that differ, and without its hash": async ({ keys, operators }) => {
    await keys.add(key(), ORIGIN);
    await keys.change("key_1", { disabled: true, group: "team" }, { ...ORIGIN, author: "one_time_link", at: 6000 });
    await keys.rotate("key_1", { hash: hash("b"), until: 9000 }, ORIGIN);
    await keys.revoke("key_1", 8000, { author: "command_line", at: 8000 });
    const all = await operators.changes({ limit: 10 });
    assertEquals(all.map(unnumbered).toReversed(), [
      {
        ...ORIGIN,
        action: "create_key",
        subject: "key_1",
        after: {
          name: "ci",
          group: "default",
          disabled: false,
          rules: {},
          expires_at: null,
          revoked_at: null,
          former_until: null,
        },
      },
      {
        ...ORIGIN,
        author: "one_time_link",
        at: 6000,
        action: "change_key",
        subject: "key_1",
        before: { group: "default", disabled: false },
        after: { group: "team", disabled: true, name: "ci" },
      },
      {
        ...ORIGIN,
        action: "rotate_key",
        subject: "key_1",
        before: { former_until: null },
        after: { former_until: "1970-01-01T00:00:09.000Z", name: "ci" },
      },
      {
        author: "command_line",
        at: 8000,
        action: "revoke_key",
        subject: "key_1",
        before: { former_until: "1970-01-01T00:00:09.000Z", revoked_at: null },
        after: { former_until: null, revoked_at: "1970-01-01T00:00:08.000Z", name: "ci" },
      },
    ]);
  },
  "logs nothing where nothing changes": async ({ keys, operators }) => {
    await keys.add(key());
    assertEquals(await keys.add(key({ id: "key_2" }), ORIGIN), false);
    assertEquals(await keys.change("key_1", { disabled: false }, ORIGIN), true);
    assertEquals(await keys.change("key_9", { disabled: true }, ORIGIN), false);
    assertEquals(await keys.revoke("key_9", 1, ORIGIN), false);
    assertEquals(await operators.changes({ limit: 10 }), []);
  },
  "lists changes a page at a time, the latest first": async ({ operators }) => {
    for (const at of [1, 2, 3, 4, 5]) await operators.logChange({ author: "gateway", at, action: "sign_in" });
    const first = await operators.changes({ limit: 2 });
    assertEquals(first.map(({ at }) => at), [5, 4]);
    const second = await operators.changes({ limit: 9, before: first[1]?.seq ?? 0 });
    assertEquals(second.map(({ at }) => at), [3, 2, 1]);
  },
  "lists the changes of one request": async ({ operators }) => {
    for (const requestId of ["a", "b", "a"]) {
      await operators.logChange({ author: "admin_key", at: 1, action: "send_playground_request", requestId });
    }
    await operators.logChange({ author: "command_line", at: 2, action: "create_sign_in_link" });
    const found = await operators.changes({ requestId: "a", limit: 9 });
    assertEquals(found.map(({ requestId, action }) => [requestId, action]), [
      ["a", "send_playground_request"],
      ["a", "send_playground_request"],
    ]);
    assertEquals((await operators.changes({ requestId: "a", before: found[0]?.seq ?? 0, limit: 9 })).length, 1);
  },
  "keeps logged changes as they are until they are pruned": async ({ operators, run }) => {
    for (const at of [1000, 2000, 3000]) await operators.logChange({ author: "gateway", at, action: "sign_in" });
    await assertRejects(() => run("UPDATE change_log SET author = 'admin_key'"), Error, "must not be changed");
    await assertRejects(() => run("DELETE FROM change_log"), Error, "only the oldest");
    await operators.pruneChanges(3000);
    assertEquals((await operators.changes({ limit: 9 })).map(({ at }) => at), [3000]);
    await operators.pruneChanges(2000);
    await assertRejects(() => run("UPDATE change_log_start SET at = 0"), Error, "moves on");
    await assertRejects(() => run("DELETE FROM change_log_start"), Error, "one start");
    assertEquals((await operators.changes({ limit: 9 })).length, 1);
  },
  "uses a sign-in link up once, and not after it has expired": async ({ operators }) => {
    await operators.addSignInLink({ id: hash("a"), expiresAt: 2000 }, 1000);
    await operators.addSignInLink({ id: hash("b"), expiresAt: 2000 }, 1000);
    const taken = await Promise.all([1, 2, 3].map(() => operators.takeSignInLink(hash("a"), 1999)));
    assertEquals(taken.filter((isTaken) => isTaken).length, 1);
    assertEquals(await operators.takeSignInLink(hash("b"), 2000), false);
    assertEquals(await operators.takeSignInLink(hash("c"), 0), false);
    await operators.addSignInLink({ id: hash("d"), expiresAt: 9000 }, 2000);
    assertEquals(await operators.takeSignInLink(hash("b"), 1000), false, "expired links go");
  },
  "keeps ended sessions until they would have expired": async ({ operators }) => {
    await operators.endSession({ id: "one", expiresAt: 2000 }, 1000);
    await operators.endSession({ id: "one", expiresAt: 2000 }, 1000);
    await operators.endSession({ id: "two", expiresAt: 3000 }, 1000);
    const ended = await operators.endedSessions(1000);
    assertEquals(ended.toSorted((a, b) => a.expiresAt - b.expiresAt), [
      { id: "one", expiresAt: 2000 },
      { id: "two", expiresAt: 3000 },
    ]);
    assertEquals(await operators.endedSessions(2000), [{ id: "two", expiresAt: 3000 }]);
  },
};

/** Runs all of them. @param open passes the parts of an empty store to a test */
export function testOperators(
  store: string,
  open: (test: (parts: OperatorParts) => Promise<void>) => Promise<void>,
  options: { ignore?: boolean } = {},
): void {
  for (const [name, test] of Object.entries(BEHAVIOURS)) {
    Deno.test(`${store} ${name}`, options, () => open(test));
  }
}
