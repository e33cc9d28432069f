import { assert, assertEquals, assertRejects } from "@std/assert";
import { deliverDue, type DeliveryParts, pauseAfter } from "../../lib/alerts/delivery.ts";
import { sendAlert, signatureOf } from "../../lib/alerts/webhook.ts";
import type { AlertBody } from "../../lib/alerts/event.ts";
import type { AlertsConfig } from "../../lib/config.ts";
import type { LogEntry } from "../../lib/log_events.ts";
import { Secret } from "../../lib/secret.ts";
import type { AlertStore } from "../../lib/store/alerts.ts";
import { openMemoryAlerts } from "../../lib/store/sqlite/memory.ts";
import { assertSigned, startReceiver, type WebhookReceiver } from "../support/webhook_receiver.ts";

const SECRET = "0123456789abcdef-of-the-alerts";
const SIGNAL = new AbortController().signal;
const OPTIONS = { now: 1_700_000_000_000, signal: SIGNAL };

const BODY: AlertBody = {
  id: "evt_1",
  type: "upstream.down",
  created: "2026-11-23T00:00:00.000Z",
  text: 'Upstream "<one>" & others',
  data: { upstream: "one", model: null },
};

function alertsTo({ url }: Pick<WebhookReceiver, "url">, format: AlertsConfig["format"] = "sluice") {
  return { webhook: new Secret(url), secret: new Secret(SECRET), format };
}

/** Delivers one alert with all retries, without waiting for the pauses. */
async function deliverAll(
  store: AlertStore,
  { receiver, timeoutMs = 10_000 }: { receiver: WebhookReceiver; timeoutMs?: number },
): Promise<LogEntry[]> {
  const log: LogEntry[] = [];
  await store.add({
    id: BODY.id,
    at: 0,
    body: JSON.stringify(BODY),
    subject: "one",
    begins: true,
    rememberUntil: 1,
    isSent: true,
  });
  const eager: AlertStore = { ...store, retry: (alert) => store.retry(alert, 0) };
  const parts: DeliveryParts = {
    store: eager,
    send: (body) => sendAlert(body, { alerts: alertsTo(receiver) }, { ...OPTIONS, now: Date.now(), timeoutMs }),
    log: (entry) => void log.push(entry),
    retryAfter: () => {},
    isOver: () => false,
  };
  await deliverDue(parts);
  return log;
}

Deno.test("a webhook signs its time and body", async () => {
  await using receiver = startReceiver();
  assertEquals(await sendAlert(BODY, { alerts: alertsTo(receiver) }, { ...OPTIONS, now: Date.now() }), 204);
  const [webhook] = receiver.received;
  if (webhook === undefined) throw new Error("Nothing was received");
  assertSigned(webhook, SECRET);
  assertEquals([webhook.body, webhook.headers.get("content-type")], [BODY, "application/json"]);
  // The value that `openssl dgst -sha256 -hmac key` prints for "1700000000.{}".
  assertEquals(
    signatureOf("{}", { secret: "key", now: 1_700_000_000_999 }),
    "t=1700000000,v1=9d713ed406bb7076d4123f0dc2c39d2df5c654ed4b0cd56b52c8b4c940bd63ae",
  );
});

Deno.test("a webhook of format slack contains only a text", async () => {
  await using receiver = startReceiver();
  await sendAlert(BODY, { alerts: alertsTo(receiver, "slack") }, OPTIONS);
  assertEquals(receiver.received.map(({ text }) => JSON.parse(text)), [
    { text: 'Sluice: Upstream "&lt;one&gt;" &amp; others' },
  ]);
});

Deno.test("a name in an alert is neither a mention nor a link in a chat", async () => {
  await using receiver = startReceiver();
  const text = "User @all [pay](https://evil.example), @channel of anna@example.com has spent 80%";
  await sendAlert({ ...BODY, text }, { alerts: alertsTo(receiver, "slack") }, OPTIONS);
  assertEquals(JSON.parse(receiver.received[0]?.text ?? ""), {
    text: "Sluice: User @\u200ball [pay]\u200b(https://evil.example), @\u200bchannel of anna@example.com has spent 80%",
  });
});

Deno.test("a webhook follows no redirect and reaches no forbidden address", async () => {
  await using receiver = startReceiver();
  await using other = startReceiver();
  receiver.answer = () => new Response(null, { status: 307, headers: { location: other.url } });
  assertEquals(await sendAlert(BODY, { alerts: alertsTo(receiver) }, OPTIONS), 307);
  assertEquals(other.received, []);
  await assertRejects(() => sendAlert(BODY, { alerts: alertsTo(other), private_networks: [] }, OPTIONS));
  assertEquals(other.received, []);
});

Deno.test("a failed alert is sent again with the same id until it is accepted", async () => {
  await using receiver = startReceiver();
  const statuses = [500, 302, 429, 404, 200];
  receiver.answer = () => new Response(null, { status: statuses.shift() ?? 500 });
  const store = openMemoryAlerts();
  const log = await deliverAll(store, { receiver });
  assertEquals(receiver.received.map(({ body }) => body.id), Array(5).fill("evt_1"));
  assertEquals(log.map(({ event, status, attempts }) => [event, status, attempts]), [
    ["alert_not_delivered", 500, 1],
    ["alert_not_delivered", 302, 2],
    ["alert_not_delivered", 429, 3],
    ["alert_not_delivered", 404, 4],
    ["alert_delivered", undefined, 5],
  ]);
  assertEquals(await store.claim(0), undefined);
});

Deno.test("status 410 ends the attempts, and a timeout is retried", async () => {
  await using receiver = startReceiver();
  receiver.answer = () => new Response(null, { status: 410 });
  const gone = await deliverAll(openMemoryAlerts(), { receiver });
  assertEquals(gone.map(({ event, status }) => [event, status]), [["alert_given_up", 410]]);
  assertEquals(receiver.received.length, 1);

  const hanging = Promise.withResolvers<Response>();
  const answers = [hanging.promise, new Response(null, { status: 200 })];
  receiver.answer = () => answers.shift() ?? new Response(null, { status: 500 });
  const log = await deliverAll(openMemoryAlerts(), { receiver, timeoutMs: 1_000 });
  hanging.resolve(new Response(null));
  assertEquals(log.map(({ event, fault }) => [event, fault]), [
    ["alert_not_delivered", "timeout"],
    ["alert_delivered", undefined],
  ]);
  assertEquals(receiver.received.length, 3);
});

Deno.test("an alert is given up after the maximum of attempts, with growing pauses", async () => {
  await using receiver = startReceiver();
  receiver.answer = () => new Response(null, { status: 503 });
  const log = await deliverAll(openMemoryAlerts(), { receiver });
  assertEquals(log.at(-1)?.event, "alert_given_up");
  const pauses = Array.from({ length: receiver.received.length - 1 }, (_, index) => pauseAfter(index + 1));
  assertEquals(pauses.slice(0, 4), [1_000, 3_000, 9_000, 27_000]);
  // A receiver that is reachable again gets all alerts of the last eight hours within ten minutes.
  assertEquals(pauses.at(-1), 600_000);
  const hours = pauses.reduce((sum, ms) => sum + ms, 0) / 3_600_000;
  assert(hours > 8 && hours < 8.5, String(hours));
  for (const line of log) assertEquals(JSON.stringify(line).includes("long-secret-path"), false);
});

Deno.test("alerts are sent one by one, oldest first, and none after the end", async () => {
  await using receiver = startReceiver();
  const store = openMemoryAlerts();
  const add = (id: string, at: number) =>
    store.add({
      id,
      at,
      body: JSON.stringify({ ...BODY, id }),
      subject: id,
      begins: true,
      rememberUntil: 1,
      isSent: true,
    });
  for (const [id, at] of [["third", 3], ["first", 1], ["second", 2]] as const) await add(id, at);
  let isOver = false;
  const parts: DeliveryParts = {
    store,
    send: async (body) => {
      const status = await sendAlert(body, { alerts: alertsTo(receiver) }, OPTIONS);
      isOver = receiver.received.length === 2;
      return status;
    },
    log: () => {},
    retryAfter: () => {},
    isOver: () => isOver,
  };
  await deliverDue(parts);
  assertEquals(receiver.received.map(({ body }) => body.id), ["first", "second"]);
});
