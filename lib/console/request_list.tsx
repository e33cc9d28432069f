/** The list of requests with its filters: as a page, as CSV, and as a live stream. */
import type { VNode } from "preact";
import { streamRequests } from "../admin/request_stream.ts";
import { findRequestPage } from "../admin/requests.ts";
import { TAIL_PARAMETERS } from "../billing/reports/request_tail.ts";
import { REQUEST_COLUMNS, REQUEST_PARAMETERS, requestCells, type RequestTexts } from "../billing/reports/requests.ts";
import type { RequestLine, RequestPage } from "../billing/reports/request_schemas.ts";
import { csvText } from "../csv.ts";
import type { RouteContext } from "../server/router.ts";
import { Count, Duration, HttpStatus, Moment, Table, Usd } from "./format.tsx";
import { CONSOLE, csvResponse, readTexts, requestsPath, SECURITY_HEADERS, showPage } from "./html.tsx";

/** Filters that the form always shows: name, label and example. */
const FILTERS = [
  ["key", "Key", ""],
  ["model", "Model", ""],
  ["status", "Status", "429 or 5xx"],
  ["since", "Since", "2h or 2026-11-01"],
] as const;

/** Filters in the collapsed part of the form: name, label and example. */
const MORE_FILTERS = [
  ["until", "Until", "1h or 2026-11-02"],
  ["group", "Group", ""],
  ["upstream", "Upstream", ""],
  ["endpoint", "Endpoint", "chat"],
  ["reason", "Reason", "limit"],
  ["user", "End user", ""],
  ["tag", "Tag", ""],
  ["min_cost_usd", "Minimum cost, USD", "0.5"],
  ["min_ms", "Minimum duration, ms", "10000"],
] as const;

/** Requests that are read per page for CSV. */
const CSV_PAGE_LIMIT = "1000";

/** `GET /admin/console/requests`. */
export function requestsPage(request: Request, context: RouteContext): Promise<Response> {
  const { gateway } = context;
  return showPage(context, async () => {
    const texts = readTexts(request, REQUEST_PARAMETERS);
    const page = await findRequestPage(texts, { gateway, signal: request.signal });
    return {
      title: "Requests",
      scripts: ["live.js"],
      body: (
        <>
          <FilterForm texts={texts} />
          <p>
            <button type="button" id="live" class="quiet" hidden aria-pressed="false" data-stream={streamPath(texts)}>
              Live
            </button>{" "}
            <a href={`${CONSOLE}/requests.csv?${new URLSearchParams(withoutPosition(texts))}`}>CSV</a>
          </p>
          <div id="requests">
            <RequestTable requests={page.data} />
          </div>
          {page.next !== null && (
            <p>
              <a href={requestsPath({ ...texts, cursor: page.next })}>Next page</a>
            </p>
          )}
        </>
      ),
    };
  });
}

/** `GET /admin/console/requests/stream`: the stream of requests of the admin API, for browsers with a session. */
export async function streamForSession(request: Request, context: RouteContext): Promise<Response> {
  const response = await streamRequests(request, context);
  for (const [name, value] of Object.entries(SECURITY_HEADERS)) response.headers.set(name, value);
  return response;
}

/** `GET /admin/console/requests.csv`: all requests that match the filters. They are read a page at a time. */
export async function requestsCsv(request: Request, { gateway }: RouteContext): Promise<Response> {
  const cancelled = new AbortController();
  const signal = AbortSignal.any([cancelled.signal, request.signal]);
  const texts = withoutPosition(readTexts(request, REQUEST_PARAMETERS));
  const find = (cursor: RequestTexts) =>
    findRequestPage({ ...texts, ...cursor, limit: CSV_PAGE_LIMIT }, { gateway, signal });
  // The first page is read before the response begins, so that a wrong filter sets the status.
  let page: RequestPage | undefined = await find({});
  const encoder = new TextEncoder();
  let header = [REQUEST_COLUMNS as readonly string[]];
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (page === undefined) return controller.close();
      controller.enqueue(encoder.encode(csvText([...header, ...page.data.map(requestCells)])));
      header = [];
      page = page.next === null ? undefined : await find({ cursor: page.next });
    },
    cancel: () => cancelled.abort(),
  });
  return csvResponse(body, "requests");
}

/** Returns the filters and the order without the position in the list. */
function withoutPosition({ cursor: _, after_seq: __, limit: ___, ...texts }: RequestTexts): RequestTexts {
  return texts;
}

/** Returns the path of the stream of new requests that match the filters. */
function streamPath(texts: RequestTexts): string {
  const filters = TAIL_PARAMETERS.flatMap((name) => {
    const text = texts[name];
    return text === undefined || name === "after_seq" ? [] : [[name, text]];
  });
  return `${CONSOLE}/requests/stream?${new URLSearchParams(filters)}`;
}

function FilterForm({ texts }: { texts: RequestTexts }): VNode {
  const fields = (filters: typeof FILTERS | typeof MORE_FILTERS) =>
    filters.map(([name, label, example]) => (
      <label>
        {label}
        <input name={name} value={texts[name] ?? ""} placeholder={example} autocomplete="off" />
      </label>
    ));
  const isMore = texts.failed !== undefined || MORE_FILTERS.some(([name]) => texts[name] !== undefined);
  return (
    <form class="fields" method="get" action={`${CONSOLE}/requests`}>
      {fields(FILTERS)}
      <label>
        Sort by
        <select name="sort">
          {["time", "cost", "duration"].map((sort) => (
            <option value={sort} selected={sort === (texts.sort ?? "time")}>{sort}</option>
          ))}
        </select>
      </label>
      <button type="submit">Find</button>
      <details open={isMore}>
        <summary>More filters</summary>
        <div class="fields">
          {fields(MORE_FILTERS)}
          <label>
            <input type="checkbox" name="failed" value="true" checked={texts.failed !== undefined} />
            Only failed or refused
          </label>
        </div>
      </details>
    </form>
  );
}

function RequestTable({ requests }: { requests: readonly RequestLine[] }): VNode {
  return (
    <Table
      columns={["Request", "Arrived", "Key", "Model", "Upstream", "Status", "#Cost", "#Output", "#Duration"]}
      rows={requests.map((request) => [
        <a href={`${CONSOLE}/requests/${request.id}`} title={request.id}>{`…${request.id.slice(-8)}`}</a>,
        <Moment iso={request.at} seconds />,
        request.key,
        request.model ?? "–",
        request.upstream ?? "–",
        <StatusAndReason request={request} />,
        <Usd usd={request.cost_usd} />,
        <Count value={request.completion_tokens} />,
        <Duration ms={request.ending === "lost" ? null : request.total_ms} />,
      ])}
      empty="No requests match."
    />
  );
}

function StatusAndReason({ request: { status, reason, why } }: { request: RequestLine }): VNode {
  return (
    <>
      <HttpStatus status={status} />
      {reason !== null && <span class="dim" title={why ?? undefined}>{` ${reason.replaceAll("_", " ")}`}</span>}
    </>
  );
}
