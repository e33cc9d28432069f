/** The page with the cost of a month at the upstreams, and its comparison with an upstream's invoice. */
import type { VNode } from "preact";
import type { ConsoleSession } from "../access/console_session.ts";
import { runReport } from "../admin/request_input.ts";
import { formatUsd } from "../billing/money.ts";
import {
  type ComparedLine,
  compareInvoice,
  comparisonText,
  readInvoice,
  readTolerance,
  requireDays,
} from "../billing/reports/invoice.ts";
import {
  sumsByModel,
  sumUpstreams,
  totalOf,
  type UpstreamFigures,
  type UpstreamSum,
} from "../billing/reports/upstreams.ts";
import { upstreamCsv } from "../billing/reports/usage_csv.ts";
import { GatewayError } from "../errors.ts";
import type { RouteContext } from "../server/router.ts";
import { inputTokensOf } from "../store/ledger.ts";
import { counted } from "../text.ts";
import { Count, State, Table, Usd } from "./format.tsx";
import { CONSOLE, CsrfField, csvResponse, type Page, runForm } from "./html.tsx";
import { ChoiceForm, CsvLink, readChoice, UPSTREAM, type UsageChoice } from "./usage_choice.tsx";

/** Makes the page of a month, or its CSV file. */
export async function upstreamUsage(
  choice: UsageChoice,
  { session, signal, context }: { session: ConsoleSession; signal: AbortSignal; context: RouteContext },
): Promise<Page | Response> {
  const { month, isCsv } = choice;
  const sums = await readSums({ period: choice.period, signal }, context);
  if (isCsv) return csvResponse(upstreamCsv(sums), `usage-${month}-upstream`);
  const upstreams = [...new Set(sums.map(({ upstream }) => upstream))];
  return {
    title: "Usage",
    body: (
      <>
        <ChoiceForm choice={choice} />
        <h2>By upstream</h2>
        <Table
          columns={[
            ...["Upstream", "Its model", "#Requests", "#Failed", "#Input", "#Output", "#Images"],
            ...["#Cost there", "#Charged", "#Margin"],
          ]}
          rows={sumsByModel(sums).map((sum) => [sum.upstream, sum.model, ...figureCells(sum)])}
          total={["Total", "", ...figureCells(totalOf(sums))]}
          empty="No requests were sent to upstreams in this month."
        />
        <CsvLink choice={choice} />
        <p class="dim">
          Costs there are calculated at the prices of the target or, if it has none, at the catalog's prices.
        </p>
        {session.role === "admin" && upstreams.length > 0 && (
          <InvoiceForm session={session} month={month} upstreams={upstreams} />
        )}
      </>
    ),
  };
}

/** `POST /admin/console/usage`: compares an invoice with the ledger. */
export function compareFromForm(request: Request, context: RouteContext): Promise<Response> {
  return runForm(request, context, async (fields) => {
    const choice = readChoice(fields, context.gateway.now());
    const upstream = fields.get("upstream") ?? "";
    const comparison = readComparison(fields, choice);
    const all = await readSums({ period: choice.period, signal: request.signal }, context);
    const sums = all.filter((sum) => sum.upstream === upstream);
    const lines = compareInvoice(sums, comparison);
    return {
      title: `Invoice of ${upstream} for ${choice.month}`,
      section: "Usage",
      body: (
        <>
          <p class={`notice ${lines.every(({ within }) => within) ? "" : "bad"}`} role="status">
            {`${comparisonText(lines)}.`}
          </p>
          <ComparedTable lines={lines} />
          <p class="dim">{unverifiedText(sums)}</p>
          <p>
            <a href={`${CONSOLE}/usage?${new URLSearchParams({ month: choice.month, by: UPSTREAM })}`}>
              Back to the month
            </a>
          </p>
        </>
      ),
    };
  });
}

/** Reads the invoice and the tolerance from a form. @throws {GatewayError} `invalid` if one cannot be read */
function readComparison(fields: URLSearchParams, { period }: UsageChoice): Parameters<typeof compareInvoice>[1] {
  try {
    const invoice = readInvoice(fields.get("invoice") ?? "");
    requireDays(invoice, period);
    return { invoice, tolerance: readTolerance(fields.get("tolerance") || "0%") };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new GatewayError("invalid", error.message, { cause: error });
  }
}

/** Reads the sums of each day of a month. @throws {GatewayError} `invalid` if requests of the month are pruned */
function readSums(
  { period, signal }: Pick<UsageChoice, "period"> & { signal: AbortSignal },
  { gateway: { store: { ledger }, config, catalog } }: RouteContext,
): Promise<UpstreamSum[]> {
  const parts = { ledger, config: { ...config, models: catalog.models } };
  return runReport(() => sumUpstreams(parts, { ...period, signal }), "month");
}

function figureCells({ tokens, upstreamCost, cost, ...sum }: UpstreamFigures): VNode[] {
  return [
    <Count value={sum.requests} />,
    <Count value={sum.failed} />,
    <Count value={inputTokensOf(tokens)} />,
    <Count value={tokens.completion} />,
    <Count value={sum.images} />,
    <Usd usd={formatUsd(upstreamCost)} />,
    <Usd usd={formatUsd(cost)} />,
    <Usd usd={formatUsd(cost - upstreamCost)} />,
  ];
}

function InvoiceForm(
  { session, month, upstreams }: { session: ConsoleSession; month: string; upstreams: readonly string[] },
): VNode {
  return (
    <details>
      <summary>Compare with a vendor's invoice</summary>
      <p>
        Paste it as CSV. The first line names the columns: <code>model</code> as the vendor calls it, <code>day</code>
        {" "}
        if it has days, and any of <code>prompt</code>, <code>input_cache_read</code>,{" "}
        <code>input_cache_write_5m</code>, <code>input_cache_write_1h</code>, <code>completion</code>,{" "}
        <code>images</code> and <code>upstream_usd</code>.
      </p>
      <form method="post" action={`${CONSOLE}/usage`}>
        <CsrfField session={session} />
        <input type="hidden" name="month" value={month} />
        <label>
          Invoice
          <textarea name="invoice" rows={8} required spellcheck={false} class="mono" />
        </label>
        <div class="fields">
          <label>
            Of
            <select name="upstream">{upstreams.map((name) => <option value={name}>{name}</option>)}</select>
          </label>
          <label>
            Tolerance, such as 0.1%
            <input name="tolerance" value="0%" autocomplete="off" />
          </label>
          <button type="submit">Compare</button>
        </div>
      </form>
    </details>
  );
}

function ComparedTable({ lines }: { lines: readonly ComparedLine[] }): VNode {
  const hasDays = lines.some(({ day }) => day !== null);
  return (
    <Table
      columns={[...hasDays ? ["Day"] : [], "Model", "Number", "#Ours", "#Invoice", "#Difference", "Result"]}
      rows={lines.map(({ day, model, what, ours, invoice, difference, within }) => [
        ...hasDays ? [day ?? ""] : [],
        model,
        what.replaceAll("_", " "),
        ours,
        invoice,
        difference,
        <State state={within ? "ok" : "open"} text={within ? "within the tolerance" : "differs"} />,
      ])}
      empty="Neither the invoice nor the ledger has any numbers."
    />
  );
}

/** Returns a text with the numbers that a comparison cannot verify. */
function unverifiedText(sums: readonly UpstreamSum[]): string {
  const { counted: ownCounts, failed, attempts, requests } = totalOf(sums);
  return `Not comparable one by one: ${counted(ownCounts, "request")} whose tokens the gateway counted itself, ` +
    `${failed} that failed without reported tokens, and ${counted(attempts - requests, "earlier attempt")} ` +
    "at this or other upstreams.";
}
