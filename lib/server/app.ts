/** The one function given to the server: a request comes in, a response goes out, nothing is ever thrown. */
import { ACCESS, type AccessTable } from "../access/access_table.ts";
import type { Gateway } from "../gateway.ts";
import type { PhaseTimers } from "../phase_timers.ts";
import { answerRequest } from "./answer_request.ts";
import type { BodyLimits } from "./body.ts";
import { checkAccess, type Surface } from "./surface.ts";
import { corsHeaders } from "./cors.ts";
import type { Drain } from "./drain.ts";
import { beginExchange, cacheSettings, createServerState } from "./exchange.ts";
import { observed, withHeaders, withoutBody, writeAbandoned, writeError } from "./finish_response.ts";
import type { ClientTracker } from "./client_tracker.ts";
import type { Route } from "./router.ts";

/** Options of an app. */
export interface AppOptions {
  routes: readonly Route[];
  /** Routes that the app serves; absent: all but the admin side. */
  surface?: Surface;
  /** The gateway of the moment; asked once per request. */
  gateway: () => Gateway;
  /** Rows for exactly the methods of `routes`. Absent: the gateway's own table. */
  access?: AccessTable;
  /** Absent: those of the gateway's configuration. */
  limits?: BodyLimits;
  nextRequestId?: () => string;
  /** Shutdown state of the process; absent: it never shuts down. */
  drain?: Drain;
  /** Absent: timers whose timer runs while requests do, and no longer. */
  timers?: PhaseTimers;
  /** Shared by all listeners of a process; absent: the app has its own. */
  clients?: ClientTracker;
}

/** Answers a request. Never rejects. Without `info` the client address is unknown. */
export type App = (request: Request, info?: Deno.ServeHandlerInfo) => Promise<Response>;

/**
 * Builds the app: request id, target, head, route, preflight, upgrade, method, credential, permission, handler.
 * @throws {RangeError} where a method of a route has no row in the access table, or a row has no route
 */
export function createApp(options: AppOptions): App {
  checkAccess(options.routes, options.access ?? ACCESS);
  const server = createServerState(options);
  const { drain, timers } = server;
  const settingsOf = cacheSettings(options, server);
  const nextRequestId = options.nextRequestId ?? createRequestIds();
  const app: App = async (request, info) => {
    const gateway = options.gateway();
    const { observer } = gateway;
    const exchange = beginExchange({ request, info, requestId: nextRequestId() }, settingsOf(gateway), server);
    const { record, answerHeaders, head, errors } = exchange;
    const endUse = gateway.uses.begin();
    timers.hold();
    let response: Response;
    try {
      response = await answerRequest(exchange, server);
    } catch (thrown) {
      // Until a response exists, an aborted signal can only mean that the client has gone.
      if (request.signal.aborted) return writeAbandoned(thrown, exchange);
      response = writeError(thrown, exchange);
    } finally {
      exchange.bodyArrived();
      endUse();
      timers.release();
    }
    response = request.method === "HEAD" ? withoutBody(response) : observed(response, { record, observer });
    observer.answered(record, response.status);
    answerHeaders.push(["x-request-id", `req_${exchange.requestId}`]);
    if (errors === "anthropic") answerHeaders.push(["request-id", `req_${exchange.requestId}`]);
    if (exchange.origins.length > 0) answerHeaders.push(...corsHeaders(head, exchange.origins));
    if (exchange.shownAddress !== undefined) answerHeaders.push(["x-sluice-client-address", exchange.shownAddress]);
    // The client of a kept connection is asked to open the next one elsewhere.
    if (drain.phase !== "serving") answerHeaders.push(["connection", "close"]);
    return withHeaders(response, answerHeaders);
  };
  server.app = app;
  return app;
}

/**
 * A source of unique ids of lower-case letters and digits. 64 random bits per process keep processes apart; within one
 * a counter does, which costs no system call per request.
 */
export function createRequestIds(): () => string {
  const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
  const boot = high.toString(16).padStart(8, "0") + low.toString(16).padStart(8, "0");
  // The first number of six digits: none has fewer.
  let count = 36 ** 5;
  return () => boot + (count++).toString(36);
}
