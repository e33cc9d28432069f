/** Behaviour of every store for alerts. */
import { assertEquals } from "@std/assert";
import type { AlertStore, ClaimedAlert, NewAlert } from "../../lib/store/alerts.ts";

/** Longer than any test takes, in milliseconds. */
const LONG_MS = 60_000;

/** An alert that begins something and is sent. */
export function alert(id: string, change: Partial<NewAlert> = {}): NewAlert {
  return {
    id,
    at: 1000,
    body: `{"id":"${id}"}`,
    subject: "upstream one",
    begins: true,
    rememberUntil: 9000,
    isSent: true,
    ...change,
  };
}

async function claimAll(alerts: AlertStore, leaseMs = LONG_MS): Promise<ClaimedAlert[]> {
  const claimed: ClaimedAlert[] = [];
  for (let next = await alerts.claim(leaseMs); next !== undefined; next = await alerts.claim(leaseMs)) {
    claimed.push(next);
  }
  return claimed;
}

async function sendAll(alerts: AlertStore): Promise<string[]> {
  const sent: string[] = [];
  for (let next = await alerts.claim(LONG_MS); next !== undefined; next = await alerts.claim(LONG_MS)) {
    await alerts.finish(next, "delivered");
    sent.push(next.id);
  }
  return sent;
}

const BEHAVIOURS: Record<string, (alerts: AlertStore) => Promise<void>> = {
  "sends the begin and the end of a subject once each": async (alerts) => {
    assertEquals(await alerts.add(alert("a", { begins: false })), "known");
    assertEquals(await alerts.add(alert("a")), "added");
    assertEquals(await alerts.add(alert("b")), "known");
    assertEquals(await alerts.add(alert("b", { begins: false, at: 2000 })), "added");
    assertEquals(await alerts.add(alert("c", { begins: false })), "known");
    assertEquals(await alerts.add(alert("c", { at: 3000 })), "added");
    assertEquals(await alerts.add(alert("d", { subject: "upstream two", at: 4000 })), "added");
    assertEquals(await sendAll(alerts), ["a", "b", "c", "d"]);
  },
  "sends the alerts of a subject in their order": async (alerts) => {
    await alerts.add(alert("a", { at: 2000 }));
    // By the clock of another node, the end comes before the start.
    await alerts.add(alert("b", { begins: false }));
    await alerts.add(alert("c", { subject: "upstream two", at: 4000 }));
    const claimed = await claimAll(alerts);
    assertEquals(claimed.map(({ id }) => id), ["a", "c"]);
    for (const each of claimed) await alerts.retry(each, 0);
    assertEquals(await sendAll(alerts), ["a", "b", "c"]);
  },
  "reports a subject that goes on again after a while": async (alerts) => {
    assertEquals(await alerts.add(alert("a", { repeatMs: 500 })), "added");
    assertEquals(await alerts.add(alert("b", { repeatMs: 500, at: 1499 })), "known");
    assertEquals(await alerts.add(alert("c", { repeatMs: 500, at: 1500 })), "added");
    assertEquals(await alerts.add(alert("d", { at: 9e12 })), "known");
  },
  "reports a subject again whose start a wrong clock put into the future": async (alerts) => {
    assertEquals(await alerts.add(alert("a", { repeatMs: 500, at: 2000 })), "added");
    assertEquals(await alerts.add(alert("b", { repeatMs: 500, at: 1500 })), "known");
    assertEquals(await alerts.add(alert("c", { repeatMs: 500, at: 1499 })), "added");
    assertEquals(await alerts.add(alert("d", { repeatMs: 500, at: 1500 })), "known");
  },
  "refuses an id that is taken, and leaves the subject as it was": async (alerts) => {
    await alerts.add(alert("a"));
    await alerts.add(alert("b", { begins: false }));
    assertEquals(await alerts.add(alert("a")), "taken");
    assertEquals(await alerts.add(alert("c")), "added");
  },
  "changes a subject without an alert where none is to be sent": async (alerts) => {
    assertEquals(await alerts.add(alert("a", { isSent: false })), "added");
    assertEquals(await alerts.add(alert("b")), "known");
    assertEquals(await claimAll(alerts), []);
  },
  "gives an alert to one claim at a time, and again after the lease": async (alerts) => {
    await alerts.add(alert("a"));
    assertEquals(await alerts.claim(0), { id: "a", body: '{"id":"a"}', attempts: 1 });
    const second = await alerts.claim(LONG_MS);
    assertEquals(second?.attempts, 2);
    assertEquals(await alerts.claim(LONG_MS), undefined);
  },
  "ends an alert for the last claim alone": async (alerts) => {
    await alerts.add(alert("a"));
    const first = await alerts.claim(0);
    const second = await alerts.claim(0);
    if (first === undefined || second === undefined) throw new Error("There is nothing to claim");
    await alerts.finish(first, "delivered");
    await alerts.retry(first, LONG_MS);
    const third = await alerts.claim(0);
    assertEquals(third?.attempts, 3);
    if (third !== undefined) await alerts.finish(third, "given_up");
    assertEquals(await alerts.claim(0), undefined);
  },
  "makes an alert due again after a pause": async (alerts) => {
    await alerts.add(alert("a"));
    const [first] = await claimAll(alerts);
    if (first === undefined) throw new Error("There is nothing to claim");
    await alerts.retry(first, LONG_MS);
    assertEquals(await alerts.claim(0), undefined);
    await alerts.retry(first, 0);
    assertEquals((await alerts.claim(0))?.attempts, 2);
  },
  "forgets what has ended, and keeps what is to be sent": async (alerts) => {
    await alerts.add(alert("a"));
    const [first] = await claimAll(alerts);
    if (first === undefined) throw new Error("There is nothing to claim");
    await alerts.finish(first, "delivered");
    await alerts.add(alert("b", { subject: "upstream two" }));
    await alerts.prune({ until: 1000, now: 9000 });
    assertEquals(await alerts.add(alert("a")), "taken");
    assertEquals(await alerts.add(alert("c")), "known");
    await alerts.prune({ until: 1001, now: 9001 });
    assertEquals((await claimAll(alerts)).map(({ id }) => id), ["b"]);
    assertEquals(await alerts.add(alert("a")), "added");
  },
};

/** Tests the alerts of a store. @param open hands fresh alerts to a test */
export function testAlerts(
  name: string,
  open: (test: (alerts: AlertStore) => Promise<void>) => Promise<void>,
  options: Pick<Deno.TestDefinition, "ignore"> = {},
): void {
  for (const [behaviour, test] of Object.entries(BEHAVIOURS)) {
    Deno.test(`${name} ${behaviour}`, options, () => open(test));
  }
}
