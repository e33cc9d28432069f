import { assert, assertEquals } from "@std/assert";
import { ALERT_TYPES } from "../../lib/alerts/event.ts";
import { alertOf, LOGGED_ALERTS } from "../../lib/alerts/log_alerts.ts";
import type { LogEntry, LogEvent } from "../../lib/log_events.ts";
import { readSources } from "../../tools/sources.ts";

/** A line with the facts that such lines have. */
function line(event: LogEvent, facts: Partial<LogEntry> = {}): LogEntry {
  return { level: "error", event, upstream: "one", model: "m", scope: "model", status: 403, ...facts } as LogEntry;
}

Deno.test("every log event that creates an alert is logged somewhere", async () => {
  const sources = (await readSources("lib")).filter(({ path }) => !path.startsWith("lib/alerts/"));
  const missing = LOGGED_ALERTS.filter((event) => !sources.some(({ text }) => text.includes(`event: "${event}"`)));
  assertEquals(missing, []);
});

Deno.test("alerts from the log have a known type, a sentence and complete facts", () => {
  for (const event of LOGGED_ALERTS) {
    const alert = alertOf(line(event));
    assert(alert !== undefined && ALERT_TYPES.includes(alert.type), event);
    assertEquals(/undefined|null/.test(`${alert.subject} ${alert.text}`), false, event);
    assertEquals(Object.values(alert.data).includes("undefined"), false, event);
    // Alerts about the end of a condition are marked as such.
    assertEquals(alert.begins, !/(closed|accepted|_up|_readable|recovered)$/.test(event), event);
  }
  assertEquals(alertOf(line("request")), undefined);
});

Deno.test("the end of a condition has the subject of its start", () => {
  const pairs = [
    ["breaker_opened", "breaker_closed"],
    ["upstream_key_refused", "upstream_key_accepted"],
    ["store_down", "store_up"],
    ["store_changes_unreadable", "store_changes_readable"],
    ["limits_store_down", "limits_store_up"],
    ["ledger_failed", "ledger_recovered"],
  ] as const;
  for (const scope of ["model", "upstream", "client_key"]) {
    const facts = { scope, ...(scope === "client_key" && { key_id: "key_1" }) };
    for (const [begin, end] of pairs) {
      assertEquals(alertOf(line(begin, facts))?.subject, alertOf(line(end, facts))?.subject);
    }
  }
  const subjects = ["model", "upstream"].map((scope) => alertOf(line("breaker_opened", { scope }))?.subject);
  assertEquals(new Set([...subjects, alertOf(line("breaker_opened", { key_id: "key_1" }))?.subject]).size, 3);
});

Deno.test("target_failed creates an alert only for status 403", () => {
  assertEquals(alertOf(line("target_failed"))?.type, "upstream.key_refused");
  for (const status of [400, 401, 500, undefined]) assertEquals(alertOf(line("target_failed", { status })), undefined);
});

Deno.test("an alert about an upstream names the client key and the last failure", () => {
  const opened = line("breaker_opened", { scope: "client_key", key_id: "key_1" });
  const failure = line("target_failed", { status: 503, vendor_message: "Overloaded", reason: "It is overloaded" });
  const alert = alertOf(opened, { failure, keyName: "dora" });
  assertEquals(
    alert?.text,
    'Upstream "one" with model "m" for requests of key "dora" is down: requests fail, so the gateway pauses requests ' +
      'to it. Last failure: status 503, "Overloaded"',
  );
  const facts = { upstream: "one", model: "m", key_id: "key_1", key_name: "dora", status: 503, message: "Overloaded" };
  assertEquals(alert?.data, facts);
  const { status: _, ...unanswered } = line("target_failed", {
    reason: "Cannot reach it",
    fault: "connection refused",
  });
  assert(alertOf(opened, { failure: unanswered })?.text.endsWith("Last failure: Cannot reach it (connection refused)"));
});

Deno.test("the end of a condition says whether a reload has removed the upstream", () => {
  for (const event of ["breaker_closed", "upstream_key_accepted"] as const) {
    assert(alertOf(line(event))?.text.includes("again"), event);
    assert(alertOf(line(event, { removed: true }))?.text.includes("is no longer used"), event);
  }
});

Deno.test("alerts about stores and the ledger name the cause and the consequences", () => {
  const texts = [
    alertOf(line("limits_store_down", { policy: "local", cause: "OOM" }))?.text,
    alertOf(line("limits_store_down", { policy: "closed" }))?.text,
    alertOf(line("ledger_failed", { fault: "disk full" }))?.text,
    alertOf(line("ledger_failed", { fault: "disk failed" }))?.text,
    alertOf(line("store_down", { fault: "too many connections" }))?.text,
    alertOf(line("store_changes_unreadable", { code: "42501", fault: "permission missing" }))?.text,
  ];
  assertEquals(texts, [
    "The limits store is unreachable (OOM): each node enforces its share of the limits",
    "The limits store is unreachable: requests with limits are refused",
    'The ledger cannot be written: requests with a cost are refused (disk full); the log has "ledger_failed"',
    "The ledger cannot be written: requests with a cost are refused until the file is repaired and the gateway restarted " +
    '(disk failed); the log has "ledger_failed"',
    "The store of keys and the ledger is unreachable (too many connections): cached keys keep working, requests with a " +
    "budget are refused",
    "Keys or their changes cannot be read from the store (permission missing): cached keys keep working for a " +
    "while, other keys may not",
  ]);
});
