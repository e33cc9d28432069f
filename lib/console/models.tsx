/** The page of models, with their prices and the health of their targets. */
import type { VNode } from "preact";
import type { ConsoleSession } from "../access/console_session.ts";
import type { Model, Target } from "../catalog/model.ts";
import type { Gateway } from "../gateway.ts";
import { lastFailure, type TargetFailure } from "../request/attempts.ts";
import { failureTest } from "../status/health.ts";
import { type HealthRow, targetModelName, targetName } from "../routing/health.ts";
import type { RouteContext } from "../server/router.ts";
import { grouped } from "../text.ts";
import { Count, Moment, readableRate, State, Table } from "./format.tsx";
import { CONSOLE, CsrfField, showPage } from "./html.tsx";
import { isTestable } from "./target_test.tsx";
import { allPricingAt, pricingAt } from "../catalog/catalog.ts";
import type { Pricing, TieredPrices, TimeWindow, TokenPrices } from "../catalog/price_schema.ts";

/** `GET /admin/console/models`. */
export function modelsPage(_request: Request, context: RouteContext): Promise<Response> {
  const { gateway } = context;
  return showPage(context, (session) => ({
    title: "Models",
    body: (
      <>
        <Table
          columns={["Model", "#Context", "#Input", "#Cached", "#Output", "Other prices", "Targets"]}
          rows={gateway.catalog.models.map((model) => [
            model.id,
            <Count value={model.context_length} />,
            ...usualPrices(model, gateway.now()),
            <OtherPrices model={model} now={gateway.now()} />,
            <TargetNames targets={model.targets} />,
          ])}
          empty="The catalog is empty."
        />
        <p class="dim">
          Prices are per million tokens, input / output. Those of targets are what the vendor charges you.
        </p>
        <h2>Targets</h2>
        <TargetTable gateway={gateway} session={session} />
        {session.role === "admin" && (
          <p class="dim">
            A test sends a minimal request to one target alone. It is in the ledger under the name{" "}
            <code>target test</code>, counts for no key, limit or budget, and changes no target's state.
          </p>
        )}
      </>
    ),
  }));
}

function TargetTable({ gateway, session }: { gateway: Gateway; session: ConsoleSession }): VNode {
  const health = new Map(gateway.health.snapshot().map((row) => [`${row.upstream}/${row.model}`, row]));
  const rows = gateway.catalog.models.flatMap((model) =>
    model.targets.map((target, index) => ({ model, target, index }))
  );
  return (
    <Table
      columns={[
        ...["Model and target", ...(session.role === "admin" ? ["Test"] : []), "State and last failure"],
        `#Failed in ${gateway.config.routing.breaker.window_ms / 1000} s`,
        ...["#Answered lately", "#First event", "#Tokens/s"],
      ]}
      rows={rows.map(({ model, target, index }) => [
        <>
          {model.id}
          <br />
          <span class="dim">{`${target.upstream}: ${targetModelName(target)}`}</span>
        </>,
        ...(session.role === "admin" ? [<TestForm session={session} model={model} index={index} />] : []),
        ...healthCells(health.get(targetName(target)), {
          isFailing: failureTest(gateway.config.routing.breaker),
          failure: lastFailure(gateway.health, target),
        }),
      ])}
      empty="No model has a target."
    />
  );
}

function healthCells(
  row: HealthRow | undefined,
  { isFailing, failure }: { isFailing: (row: HealthRow) => boolean; failure: TargetFailure | undefined },
): (VNode | string)[] {
  if (row === undefined) return [<span class="dim">no requests</span>, "–", "–", "–", "–"];
  const { state, until, failures, samples, recent_answers, recent_attempts, first_ms, tokens_per_second } = row;
  return [
    <div class={failure === undefined ? undefined : "wrap"}>
      <TargetState state={state} isFailing={isFailing(row)} />
      {until !== undefined && (
        <>
          {" until "}
          <Moment iso={new Date(until).toISOString()} seconds />
        </>
      )}
      {failure !== undefined && <LastFailure failure={failure} />}
    </div>,
    samples === 0 ? "–" : `${Math.round(100 * failures / samples)}% of ${samples}`,
    `${recent_answers} of ${recent_attempts}`,
    first_ms === undefined ? "–" : `${Math.round(first_ms)} ms`,
    tokens_per_second === undefined ? "–" : String(Math.round(tokens_per_second)),
  ];
}

/** Texts for the states of a target. Without the word "breaker", "open" could be taken for available. */
const STATE_TEXTS: Readonly<Record<HealthRow["state"], string>> = {
  closed: "available",
  open: "breaker open",
  half_open: "tested with one request",
  cooling: "cooling down",
  quarantined: "key refused",
};

/**
 * Shows the state of a target.
 * @param props `isFailing`: whether the target fails too often, which it can before its breaker opens
 */
export function TargetState({ state, isFailing }: { state: HealthRow["state"]; isFailing: boolean }): VNode {
  return state === "closed" && isFailing
    ? <State state="open" text="failing" />
    : <State state={state} text={STATE_TEXTS[state]} />;
}

function LastFailure({ failure: { at, status, message } }: { failure: TargetFailure }): VNode {
  return (
    <div class="dim">
      <Moment iso={new Date(at).toISOString()} seconds />
      {`: ${status === undefined ? "" : `${status} `}${message}`}
    </div>
  );
}

function TestForm({ session, model, index }: { session: ConsoleSession; model: Model; index: number }): VNode {
  if (!isTestable(model)) return <span class="dim">images are billed</span>;
  return (
    <form method="post" action={`${CONSOLE}/models`}>
      <CsrfField session={session} />
      <input type="hidden" name="model" value={model.id} />
      <input type="hidden" name="target" value={index} />
      <button type="submit" class="quiet" aria-label={`Test target ${index + 1} of ${model.id}`}>Test</button>
    </form>
  );
}

/** Returns the main prices per million tokens at `now` (Unix milliseconds): input, cached input and output. */
function usualPrices(model: Model, now: number): string[] {
  const { prompt, input_cache_read, completion } = pricingAt(model, now);
  return [prompt, input_cache_read, completion].map(perMillion);
}

/** Shows the other prices of a model, and its future price changes. */
function OtherPrices({ model, now }: { model: Model; now: number }): VNode {
  const current = pricingAt(model, now);
  const lines = [
    ...(current.window === undefined ? [] : [`now: prices of the time window ${current.window}`]),
    ...otherPriceTexts(current),
    ...(allPricingAt(model, now).time_windows ?? []).map(windowText),
    ...model.price_changes.filter(({ from }) => from > now).map(({ from, ...pricing }) =>
      `from ${new Date(from).toISOString().slice(0, 16).replace("T", " ")} UTC: ${tokensText(pricing)}`
    ),
  ];
  if (lines.length === 0) return <>–</>;
  return <ul class="plain wrap">{lines.map((line) => <li>{line}</li>)}</ul>;
}

/** Shows the targets of a model, with the prices that the vendor charges if they are configured. */
function TargetNames({ targets }: { targets: readonly Target[] }): VNode {
  return (
    <ul class="plain">
      {targets.map(({ upstream, model, pricing }) => (
        <li>{`${upstream}: ${model}${pricing === undefined ? "" : `, at ${rates(pricing)}`}`}</li>
      ))}
    </ul>
  );
}

function otherPriceTexts(pricing: Pricing): string[] {
  const { prompt, input_cache_write_5m, input_cache_write_1h, input_image, request } = pricing;
  const { hosted_tools = {}, service_tiers = {} } = pricing;
  const writes = ([["5 minutes", input_cache_write_5m], ["1 hour", input_cache_write_1h]] as const)
    .filter(([, price]) => price !== prompt && price !== "0");
  return [
    ...writes.map(([time, price]) => `cache writes for ${time}: ${perMillion(price)}`),
    ...(input_image === undefined ? [] : [`tokens of uploaded images: ${perMillion(input_image)}`]),
    ...contextTexts(pricing),
    ...Object.entries(service_tiers).flatMap(([name, tier]) => [
      `tier ${name}: ${rates(tier)}`,
      ...contextTexts(tier).map((text) => `tier ${name}, ${text}`),
    ]),
    ...(request === undefined ? [] : [`each search: ${readableRate(request)}`]),
    ...Object.entries(hosted_tools).map(([name, price]) => `each call of ${name}: ${readableRate(price)}`),
  ];
}

function contextTexts({ context_tiers = [] }: TieredPrices): string[] {
  return context_tiers.map((tier) => `above ${grouped(tier.above)} tokens: ${rates(tier)}`);
}

function windowText({ from, until, pricing }: TimeWindow): string {
  return `${timeOf(from)} to ${timeOf(until)} UTC (${pricing.window}): ${tokensText(pricing)}`;
}

function tokensText(pricing: TieredPrices): string {
  return [rates(pricing), ...contextTexts(pricing)].join(", ");
}

/** Formats the prices of input and output. */
function rates({ prompt, completion }: TokenPrices): string {
  return `${perMillion(prompt)} / ${perMillion(completion)}`;
}

/** Formats minutes since midnight as `16:30`. */
function timeOf(minutes: number): string {
  return `${String(Math.floor(minutes / 60)).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;
}

/** Formats a price per million tokens. @param price USD per token, as a decimal string */
function perMillion(price: string): string {
  return readableRate(price, 6);
}
