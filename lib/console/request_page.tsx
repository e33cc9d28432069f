/** The page of a request: its cost, attempts, refusal, dropped parameters and ids. */
import type { VNode } from "preact";
import { readChanges } from "../admin/changes.ts";
import type { ChangeLine } from "../admin/schemas.ts";
import { explainRequest } from "../billing/reports/explain.ts";
import type { EndedRequest } from "../billing/reports/request_schemas.ts";
import { contextTierText, SOURCES } from "../billing/reports/explain_text.ts";
import { attemptLines, skippedLines } from "../billing/reports/reason_text.ts";
import { GatewayError } from "../errors.ts";
import type { RouteContext } from "../server/router.ts";
import { AttemptTimeline } from "./attempt_timeline.tsx";
import { Copyable } from "./copy.tsx";
import { Cards, Count, Duration, HttpStatus, Moment, Table, Usd } from "./format.tsx";
import { CONSOLE, keyPath, type Page, requestsPath, showPage } from "./html.tsx";

/** `GET /admin/console/requests/[request_id]`. */
export function requestPage(_request: Request, context: RouteContext): Promise<Response> {
  const { gateway: { store: { ledger, keys, operators }, config }, params: { request_id: id = "" } } = context;
  return showPage(context, async () => {
    const explanation = await explainRequest(ledger, id, { keys, config });
    if (explanation === undefined) {
      throw new GatewayError("not_found", `Cannot explain request "${id}": it is not in the ledger`);
    }
    if (explanation.state === "ended") {
      const { data: [sender] } = await readChanges({ operators }, { request: explanation.id, limit: "1" });
      return endedPage(explanation, sender);
    }
    return {
      title: "Running request",
      section: "Requests",
      scripts: ["copy.js"],
      body: (
        <>
          <p>
            <Copyable text={explanation.id} label="id of the request" />
          </p>
          <Cards
            cards={[
              ["Arrived", <Moment iso={explanation.at} seconds />],
              ["Key", <a href={keyPath(explanation.key_id)}>{explanation.key}</a>],
              ["Model", explanation.model],
              ["Held", <Usd usd={explanation.held_usd} />],
            ]}
          />
        </>
      ),
    };
  });
}

/**
 * Makes the page of a request that has ended.
 * @param sender its entry in the log of changes, if an operator sent it from the playground or as a test
 */
function endedPage(request: EndedRequest, sender: ChangeLine | undefined): Page {
  const { model, upstream } = request;
  return {
    title: "Request",
    section: "Requests",
    scripts: ["copy.js"],
    body: (
      <>
        <p>
          <Copyable text={request.id} label="id of the request" />
        </p>
        {request.why !== null && <p class="notice bad">{request.why}</p>}
        {request.dropped.length > 0 && (
          <p class="notice warn">
            {"These parameters were not sent, because the upstream does not support them or the key may not use them: " +
              `${request.dropped.join(", ")}.`}
          </p>
        )}
        {request.max_tokens !== null && (
          <p class="notice warn">
            {`The answer was limited to ${request.max_tokens} tokens, because the budget did not cover more.`}
          </p>
        )}
        <Cards
          cards={[
            ["Arrived", <Moment iso={request.at} seconds />],
            ["Key", <a href={keyPath(request.key_id)}>{request.key}</a>],
            ["Group", request.group],
            ["Model", model === null ? "–" : <a href={requestsPath({ model })}>{model}</a>],
            ["Upstream", upstream === null ? "–" : <a href={requestsPath({ upstream })}>{upstream}</a>],
            ["Endpoint", request.endpoint],
            ["Status", <HttpStatus status={request.status || null} />],
            ["Ending", request.ending.replaceAll("_", " ")],
            ["First token", <Duration ms={request.first_ms} />],
            ["Duration", <Duration ms={request.ending === "lost" ? null : request.total_ms} />],
            ["Cost", <Usd usd={request.charged_usd} />],
            ["End user", request.user ?? "–"],
            ["Tags", request.tags.join(", ") || "–"],
            ...(sender === undefined ? [] : [["Sent by", <Sender change={sender} />] as const]),
          ]}
        />
        <h2>Price</h2>
        <Arithmetic request={request} />
        <h2>Attempts</h2>
        <Attempts request={request} />
        <h2>Ids</h2>
        <Ids request={request} />
      </>
    ),
  };
}

/** Shows the operator who sent a request from the playground, or as a test. */
function Sender({ change: { author, address, request_id } }: { change: ChangeLine }): VNode {
  return (
    <a href={`${CONSOLE}/changes?request=${request_id}`}>
      {`${author.replaceAll("_", " ")}${address === null ? "" : ` from ${address}`}`}
    </a>
  );
}

/** Shows each price times its count, and how the charge follows from the sum. */
function Arithmetic({ request }: { request: EndedRequest }): VNode {
  const tiers = [
    ...(request.service_tier === null ? [] : [`service tier ${request.service_tier}`]),
    ...(request.context_tier === null ? [] : [`prices ${contextTierText(request.context_tier)}`]),
    ...(request.price_window === null ? [] : [`prices of the time window ${request.price_window}`]),
    ...(request.price_version === null ? [] : [`version ${request.price_version} of the prices`]),
  ];
  const amounts: [string, string | null][] = [
    ["Sum", request.sum_usd],
    ["Held before", request.held_usd],
    ["Released", request.released_usd],
    ["Beyond the held amount, paid by the operator", request.overrun_usd],
    ["Charged", request.charged_usd],
    ["Cost at the upstream", request.upstream_usd],
  ];
  return (
    <>
      <Table
        columns={["Price of", "#Count", "#× USD each", "#× factor", "#= USD"]}
        rows={request.lines.map((line) => [
          line.class.replaceAll("_", " "),
          <Count value={line.tokens} />,
          line.price_usd,
          line.factor,
          line.amount_usd,
        ])}
        empty={request.why_free === null ? "Nothing was charged." : `Nothing was charged: ${request.why_free}.`}
      />
      <Table
        columns={["Amount", "#USD"]}
        rows={amounts.flatMap(([name, usd]) => usd === null || usd === "0" && name !== "Charged" ? [] : [[name, usd]])}
        empty=""
      />
      <p class="dim">{[`Token counts: ${SOURCES[request.source]}`, ...tiers].join("; ")}.</p>
      {!request.adds_up && <p class="notice bad">The lines do not make up the charge: the ledger was changed.</p>}
    </>
  );
}

function Attempts({ request }: { request: EndedRequest }): VNode {
  const { attempt_list: attempts } = request;
  const skipped = skippedLines(request.skipped);
  return (
    <>
      {request.attempts > 0 && <AttemptTimeline request={request} />}
      {attempts.length === 0
        ? <p class="dim">{noAttempts(request)}</p>
        : <ol>{attemptLines(attempts).map((line) => <li>{line.replace(/^\d+\. /, "")}</li>)}</ol>}
      {skipped.length > 0 && <ul>{skipped.map((line) => <li>{line.replace(/^- /, "")}</li>)}</ul>}
    </>
  );
}

/** Returns the reason why a request lists no attempts. */
function noAttempts({ ending, attempts }: EndedRequest): string {
  if (ending === "lost") return "Unknown: the process ended before the request did.";
  if (attempts === 0) return "No upstream was tried.";
  return ending === "failed" ? "The first upstream was tried." : "The first upstream answered.";
}

function Ids({ request }: { request: EndedRequest }): VNode {
  const rows: [string, string][] = [
    ["Key", request.key_id],
    ["Entry of the ledger", String(request.seq)],
    ...(request.attempt_list.length > 0 || request.upstream_request_id === null
      ? []
      : [[`Request at ${request.upstream}`, request.upstream_request_id] satisfies [string, string]]),
    ...request.attempt_list.flatMap(({ upstream, request_id }): [string, string][] =>
      request_id === undefined ? [] : [[`Request at ${upstream}`, request_id]]
    ),
  ];
  return (
    <Table
      columns={["Of", "Id"]}
      rows={rows.map(([name, id]) => [name, <Copyable text={id} label={`id: ${name}`} />])}
      empty=""
    />
  );
}
