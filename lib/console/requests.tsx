/** Requests: the list with its filters, and one request with its price and its attempts. */
import type { VNode } from "preact";
import { findRequestPage } from "../admin/requests.ts";
import { type EndedRequest, explainRequest } from "../billing/reports/explain.ts";
import { attemptLines } from "../billing/reports/reason_text.ts";
import { REQUEST_PARAMETERS, type RequestLine, type RequestTexts } from "../billing/reports/requests.ts";
import { keyNames } from "../billing/reports/usage.ts";
import { GatewayError } from "../errors.ts";
import type { RouteContext } from "../server/router.ts";
import { Cards, Count, Moment, Table, Usd } from "./format.tsx";
import { CONSOLE, type Page, queryOf, showPage } from "./html.tsx";

/** Filters of the form. */
const FILTERS = [
  ["key", "Key"],
  ["group", "Group"],
  ["model", "Model"],
  ["upstream", "Upstream"],
  ["status", "Status, such as 429 or 5xx"],
  ["reason", "Reason, such as limit"],
  ["user", "End user"],
  ["tag", "Tag"],
  ["since", "Since, such as 2h or 2026-11-01"],
  ["min_cost_usd", "Minimum cost, USD"],
] as const;

/** `GET /admin/console/requests`. */
export function requestsPage(request: Request, context: RouteContext): Promise<Response> {
  const { gateway } = context;
  return showPage(context, async () => {
    const texts = readTexts(request);
    const page = await findRequestPage(texts, { gateway, signal: request.signal });
    return {
      title: "Requests",
      body: (
        <>
          <FilterForm texts={texts} />
          <RequestTable requests={page.data} />
          {page.next !== null && (
            <p>
              <a href={`${CONSOLE}/requests?${new URLSearchParams({ ...texts, cursor: page.next })}`}>Next page</a>
            </p>
          )}
        </>
      ),
    };
  });
}

/** Non-empty parameters of the query that a search knows. */
function readTexts(request: Pick<Request, "url">): RequestTexts {
  const query = queryOf(request);
  const texts: RequestTexts = {};
  for (const name of REQUEST_PARAMETERS) {
    const value = query.get(name)?.trim() ?? "";
    if (value !== "") texts[name] = value;
  }
  return texts;
}

function FilterForm({ texts }: { texts: RequestTexts }): VNode {
  return (
    <form class="fields" method="get" action={`${CONSOLE}/requests`}>
      {FILTERS.map(([name, label]) => (
        <label>
          {label}
          <input name={name} value={texts[name] ?? ""} autocomplete="off" />
        </label>
      ))}
      <label>
        Sort by
        <select name="sort">
          {["time", "cost", "duration"].map((sort) => (
            <option value={sort} selected={sort === (texts.sort ?? "time")}>{sort}</option>
          ))}
        </select>
      </label>
      <button type="submit">Find</button>
    </form>
  );
}

function RequestTable({ requests }: { requests: readonly RequestLine[] }): VNode {
  return (
    <Table
      columns={["Request", "Arrived", "Key", "Model", "Upstream", "#Status", "#Cost", "#Output", "#ms", "Reason"]}
      rows={requests.map((request) => [
        <a href={`${CONSOLE}/requests/${request.id}`} title={request.id}>{`…${request.id.slice(-8)}`}</a>,
        <Moment iso={request.at} />,
        request.key,
        request.model ?? "–",
        request.upstream ?? "–",
        request.status ?? "–",
        <Usd usd={request.cost_usd} />,
        <Count value={request.completion_tokens} />,
        request.total_ms,
        <span title={request.why ?? undefined}>{request.reason?.replaceAll("_", " ") ?? ""}</span>,
      ])}
      empty="No requests match."
    />
  );
}

/** `GET /admin/console/requests/[request_id]`. */
export function requestPage(_request: Request, context: RouteContext): Promise<Response> {
  const { gateway: { store: { ledger, keys }, config }, params: { request_id: id = "" } } = context;
  return showPage(context, async () => {
    const nameOf = async (keyId: string) => (await keyNames({ keys, config }, [keyId])).get(keyId);
    const found = await explainRequest(ledger, id, nameOf);
    if (found === undefined) {
      throw new GatewayError("not_found", `Cannot explain request "${id}": it is not in the ledger`);
    }
    if (found.state === "ended") return endedPage(found, await nameOf(found.key_id) ?? found.key_id);
    return {
      title: `Request ${found.id}`,
      body: <Cards cards={[["State", "running"], ["Model", found.model], ["Held", <Usd usd={found.held_usd} />]]} />,
    };
  });
}

function endedPage(request: EndedRequest, key: string): Page {
  return {
    title: `Request ${request.id}`,
    body: (
      <>
        {request.why !== null && <p class="notice bad">{request.why}</p>}
        <Cards
          cards={[
            ["Arrived", <Moment iso={request.at} />],
            ["Key", <a href={`${CONSOLE}/keys/${encodeURIComponent(request.key_id)}`}>{key}</a>],
            ["Model", request.model ?? "–"],
            ["Upstream", request.upstream ?? "–"],
            ["Status", request.status || "–"],
            ["Ending", request.ending.replaceAll("_", " ")],
            ["First event", request.first_ms === null ? "–" : `${request.first_ms} ms`],
            ["Duration", request.ending === "lost" ? "–" : `${request.total_ms} ms`],
            ["Cost", <Usd usd={request.charged_usd} />],
            ["End user", request.user ?? "–"],
            ["Tags", request.tags.join(", ") || "–"],
          ]}
        />
        <h2>Price</h2>
        <Table
          columns={["Price of", "#Count", "#USD each", "#Factor", "#USD"]}
          rows={request.lines.map((line) => [
            line.class.replaceAll("_", " "),
            line.tokens,
            line.price_usd,
            line.factor,
            line.amount_usd,
          ])}
          empty={request.why_free ?? "Nothing was charged."}
        />
        <p>
          {`Together ${request.sum_usd} USD; charged ${request.charged_usd} USD. ${
            request.held_usd === "0" ? "" : `${request.held_usd} USD were held. `
          }Token counts: ${request.source}.`}
        </p>
        <h2>Attempts</h2>
        {request.attempt_list.length === 0
          ? <p class="dim">{noAttempts(request)}</p>
          : <ol>{attemptLines(request.attempt_list).map((line) => <li>{line.replace(/^\d+\. /, "")}</li>)}</ol>}
      </>
    ),
  };
}

/** Says why a request lists no attempts. */
function noAttempts({ ending, attempts }: EndedRequest): string {
  if (ending === "lost") return "Unknown: the process ended before the request did.";
  return attempts === 0 ? "No upstream was asked." : "The first upstream answered.";
}
