import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { formatUsd } from "../../lib/billing/money.ts";
import { readPeriod } from "../../lib/billing/reports/period.ts";
import { sumUpstreams } from "../../lib/billing/reports/upstreams.ts";
import { usageReport } from "../../lib/billing/reports/usage.ts";
import { DAY_MS } from "../../lib/store/days.ts";
import { type DemoGateway, startDemoGateway } from "../demo/gateway.ts";
import { ADMIN_KEY, VIEWER_KEY } from "../support/keyed_gateway.ts";
import { entryOf } from "../billing/reports/entries.ts";
import { Browser, signedIn, startConsole } from "./browser.ts";

/** The month with most of the demo's traffic. */
const MONTH = new Date(Date.now() - 15 * DAY_MS).toISOString().slice(0, 7);
const PERIOD = readPeriod({ period: MONTH }, Date.now());

/** Cells of the table's rows: the exact value from the title where a cell has one. */
function rowsOf(html: string): string[][] {
  const body = /<tbody>(.*?)<\/tbody>/s.exec(html)?.[1] ?? "";
  return [...body.matchAll(/<tr[^>]*>(.*?)<\/tr>/gs)].map(([, row = ""]) =>
    [...row.matchAll(/<td[^>]*>(.*?)<\/td>/gs)].map(([, cell = ""]) =>
      (/title="([^"]*)"/.exec(cell)?.[1] ?? cell.replaceAll(/<[^>]*>/g, "")).replace(/ USD$/, "").replaceAll(",", "")
    )
  );
}

Deno.test("the usage page of the demo", async (t) => {
  // Its month of traffic takes a second of the processor.
  await using demo = await startDemoGateway();
  const name = "it has the lines of the report by one and by two things, as a page and as CSV";
  await t.step(name, () => compareLines(demo));
  await t.step(
    "a matching invoice has no differences, and another one shows its differences",
    () => compareInvoices(demo),
  );
});

async function compareLines(demo: DemoGateway): Promise<void> {
  const { store: { ledger, keys }, gateway: { config } } = demo;
  const browser = new Browser(demo);
  await browser.signIn(VIEWER_KEY);
  for (const [by, thenBy] of [["day"], ["tag", "user"]] as const) {
    const report = await usageReport({ ledger, keys, config }, { ...PERIOD, by, ...(thenBy && { thenBy }) });
    const query = new URLSearchParams({ month: MONTH, by, ...(thenBy && { then: thenBy }) });
    const { html } = await browser.get(`/usage?${query}`);
    const names = thenBy === undefined ? 1 : 2;
    const lines = report.lines.map(({ name, then_name, cost_usd, requests }) =>
      [name, then_name].slice(0, names).map((name) => name || "–").concat(cost_usd, String(requests))
    );
    const { cost_usd, requests } = report.total;
    const total = ["Total", ""].slice(0, names).concat(cost_usd, String(requests));
    assertEquals(rowsOf(html).map((row) => row.slice(0, names + 2)), [...lines.slice(0, 250), total]);
    const shares = report.lines.map(({ cached_percent: share }) => share === null ? "–" : `${share}%`);
    assertEquals(rowsOf(html).slice(0, -1).map((row) => row[names + 4]), shares.slice(0, 250));
    assertEquals(html.includes("the file has all of them"), lines.length > 250);
    const { html: csv, headers } = await browser.get(`/usage?${query}&format=csv`);
    assertStringIncludes(headers.get("content-disposition") ?? "", `filename="usage-${MONTH}-${by}`);
    assertEquals(csv.trim().split("\r\n").length, report.lines.length + 1);
    for (const { cost_usd } of report.lines) assertStringIncludes(csv, `,${cost_usd},`);
  }
  assertEquals((await browser.get("/usage?month=2026-13")).status, 400);
}

async function compareInvoices(demo: DemoGateway): Promise<void> {
  const { store: { ledger }, gateway: { config } } = demo;
  const browser = new Browser(demo);
  await browser.signIn(ADMIN_KEY);
  const sums = await sumUpstreams({ ledger, config }, { ...PERIOD, upstream: "meridian" });
  const invoice = (more: bigint) =>
    [
      "model,completion,upstream_usd",
      ...sums.map(({ model, tokens, upstreamCost }) =>
        `${model},${tokens.completion},${formatUsd(upstreamCost + more)}`
      ),
    ].join("\n");
  const { html } = await browser.get(`/usage?month=${MONTH}&by=upstream`);
  assertStringIncludes(html, "Compare with a vendor&#39;s invoice");
  const compare = (invoice: string, more = {}) =>
    browser.post("/usage", { month: MONTH, upstream: "meridian", invoice, tolerance: "0%", ...more });
  assertStringIncludes((await compare(invoice(0n))).html, "No differences found.");
  const other = (await compare(invoice(1n))).html;
  assertMatch(other, /\d+ of \d+ numbers differ/);
  assertEquals((await compare("nothing")).status, 400);
  assertEquals((await compare(invoice(0n), { csrf: "" })).status, 403);
  await browser.signIn(VIEWER_KEY);
  assert(!(await browser.get(`/usage?month=${MONTH}&by=upstream`)).html.includes("<textarea"));
}

Deno.test("the usage page says from when single requests are stored", async () => {
  await using gateway = startConsole();
  const now = Date.now();
  const { ledger } = gateway.store;
  await ledger.append([entryOf({ id: "old", at: now - 2 * DAY_MS }), entryOf({ id: "new", at: now })]);
  while (await ledger.prune(Math.floor(now / DAY_MS), Infinity));
  const browser = await signedIn(gateway, VIEWER_KEY);
  const month = new Date(now - 2 * DAY_MS).toISOString().slice(0, 7);
  for (const by of ["user", "tag", "upstream"]) {
    const { status, html } = await browser.get(`/usage?by=${by}&month=${month}`);
    assertEquals([by, status], [by, 400]);
    assertStringIncludes(html, "single requests are kept from");
  }
});
