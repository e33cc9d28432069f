/**
 * Creates the function that answers every request of the HTTP server. It always returns a response and never throws.
 */
import type { Access } from "../access/access_table.ts";
import { RequestBody } from "./body.ts";
import { corsHeaders, preflight } from "./cors.ts";
import { shutdownError } from "./drain.ts";
import {
  type App,
  type AppOptions,
  beginExchange,
  cacheSettings,
  createServerState,
  type Exchange,
  type ServerState,
} from "./exchange.ts";
import { countBytes, withHeaders, withoutBody, writeAbandoned, writeError } from "./finish_response.ts";
import { addressOf, countConcurrent } from "./client_tracker.ts";
import { readTarget } from "./route_matcher.ts";
import { METHODS, type RouteContext } from "./router.ts";
import { runForKey } from "../scheduler.ts";
import { GatewayError } from "../errors.ts";
import { createConnectionHost } from "./connection_host.ts";
import { redirectToSignIn, requireReading, sessionOf } from "./console_guard.ts";
import { authorizeRequest, enterRefusal, noSuchRoute, operatorCheck, unknownPath } from "./request_guard.ts";
import { startPage } from "./start_page.ts";

/**
 * Creates the app. It handles a request in this order: request id, route, limits of the head, preflight, upgrade,
 * method, credential and permissions, limits of the client, handler.
 * @throws {RangeError} if a method of a route has no row in the access table, or a row has no route
 */
export function createApp(options: AppOptions): App {
  const server = createServerState(options);
  const { drain } = server;
  const settingsOf = cacheSettings(options, server);
  const nextRequestId = options.nextRequestId ?? createRequestIds();
  const app: App = async (request, info) => {
    const gateway = options.gateway();
    const { observer } = gateway;
    const exchange = beginExchange({ request, info, requestId: nextRequestId() }, settingsOf(gateway), server);
    const { record, answerHeaders, head, errors } = exchange;
    const endUse = gateway.uses.begin();
    let response: Response;
    let isAnswered = false;
    try {
      response = await answerRequest(exchange, server);
      isAnswered = true;
    } catch (thrown) {
      // Until a response exists, an aborted signal can only mean that the client has disconnected.
      if (request.signal.aborted) return writeAbandoned(thrown, exchange);
      response = writeError(thrown, exchange);
    } finally {
      exchange.body?.release(isAnswered);
      const { endConcurrent } = exchange;
      // A request counts as concurrent until the last byte of its answer has been sent.
      if (isAnswered && endConcurrent && info) info.completed.then(endConcurrent, endConcurrent);
      else endConcurrent?.();
      exchange.bodyArrived();
      endUse();
    }
    response = request.method === "HEAD" ? withoutBody(response) : countBytes(response, { record, observer });
    if (isAnswered && info) exchange.body?.keepAnswer(record.bytesOut, info);
    observer.answered(record, response.status);
    answerHeaders.push(["x-request-id", `req_${exchange.requestId}`]);
    if (errors === "anthropic") answerHeaders.push(["request-id", `req_${exchange.requestId}`]);
    if (exchange.origins.length > 0) answerHeaders.push(...corsHeaders(head, exchange.origins));
    if (exchange.shownAddress !== undefined) answerHeaders.push(["x-sluice-client-address", exchange.shownAddress]);
    // Ask the client to open a new connection, which another process may accept.
    if (drain.phase !== "serving") answerHeaders.push(["connection", "close"]);
    return withHeaders(response, answerHeaders);
  };
  server.app = app;
  return app;
}

/**
 * Returns a function that makes unique ids of lower-case letters and digits. An id is 64 random bits of the process and
 * a counter, so that a new id needs no system call.
 */
export function createRequestIds(): () => string {
  const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2));
  const processId = high.toString(16).padStart(8, "0") + low.toString(16).padStart(8, "0");
  // The smallest number with six digits in base 36, so that all ids have the same length.
  let count = 36 ** 5;
  return () => processId + (count++).toString(36);
}

/**
 * Header with which a client asks for its own address as the gateway sees it, to check the configuration of proxies.
 */
const SHOW_HEADER = "x-sluice-show";

/** Finds the route, checks access, and calls the handler. @throws {GatewayError} for the app to write */
async function answerRequest(exchange: Exchange, server: ServerState): Promise<Response> {
  const { request, head, gateway, record } = exchange;
  const { method } = request;
  // The target of CONNECT is a host without a path, so no route can match.
  if (method === "CONNECT") {
    throw new GatewayError("method_not_allowed", "Cannot use method CONNECT: this is not a proxy", {
      headers: { allow: [...METHODS, "HEAD"].sort().join(", ") },
    });
  }
  const match = server.findRoute(exchange.addressed);
  head.check();
  if (match === undefined) {
    const { path } = readTarget(exchange.addressed);
    const page = startPage(exchange, { path, surface: server.surface });
    if (page !== undefined) return page;
    if (exchange.errors === "openai" && head.get("x-goog-api-key") !== null) exchange.errors = "google";
    // Clients do not use the operators' listener.
    throw server.surface === "admin" ? noSuchRoute() : unknownPath(path, exchange.errors === "google");
  }
  const { route: { path, isForOperators, allowed, methods }, params } = match;
  if (isForOperators) {
    // If the admin side has its own listener, the metrics are served there.
    const isElsewhere = path === "/metrics" && gateway.config.admin?.listen !== undefined;
    if (isElsewhere && server.surface === "public") throw noSuchRoute();
    exchange.origins = [];
  }
  gateway.observer.routed(record, path);
  const preflightAnswer = method === "OPTIONS" ? preflight(head, exchange.origins, allowed) : undefined;
  if (preflightAnswer !== undefined) return preflightAnswer;
  const upgrade = head.get("upgrade");
  const isUpgrade = upgrade !== null && /\bwebsocket\b/i.test(upgrade);
  const routeHandler = methods.get(method);
  if (isUpgrade && (method !== "GET" || routeHandler?.row?.websocket !== true)) throw noUpgrade();
  if (routeHandler === undefined) {
    throw new GatewayError("method_not_allowed", `Cannot use this method here: expected ${allowed.join(", ")}`, {
      headers: { allow: allowed.join(", ") },
    });
  }
  const { phase } = server.drain;
  // At the end of a shutdown the server answers only health checks.
  const isRefused = phase === "refusing" && path !== "/healthz" && path !== "/readyz";
  if (isRefused || isUpgrade && phase !== "serving") throw shutdownError();
  const caller = await authorizeRequest(exchange, { row: routeHandler.row, clients: server.clients });
  const credential = routeHandler.row?.credential;
  const session = credential === "session" || credential === "sign_in" ? await sessionOf(exchange) : undefined;
  if (credential === "session") {
    if (session === undefined) return redirectToSignIn();
    if (session.role === "viewer") requireReading(request);
  }
  const limits = isForOperators ? exchange.settings.adminLimits : exchange.settings.limits;
  const maxConcurrent = gateway.config.resource_limits.requests_per_client;
  if (caller !== undefined) {
    if (head.get(SHOW_HEADER) === "client-address") exchange.shownAddress = addressOf(exchange);
    try {
      if (maxConcurrent !== undefined) {
        exchange.endConcurrent = countConcurrent(exchange, { clients: server.clients, caller, limit: maxConcurrent });
      }
    } catch (error) {
      await enterRefusal(error, { gateway, requestId: exchange.requestId, record, caller });
    }
  }
  const rules = {
    headers: head,
    limits,
    budget: server.budget.reservationFor(caller?.keyId),
    timers: server.timers,
  };
  const body = exchange.body = new RequestBody(request, rules, exchange);
  const context = createContext(exchange, { body, params, caller, session, isUpgrade, credential }, server);
  return await runForKey(caller?.keyId, () => routeHandler.handler(request, context));
}

function createContext(
  exchange: Exchange,
  { body, params, caller, session, isUpgrade, credential }:
    & Pick<RouteContext, "params" | "caller" | "session">
    & { body: RequestBody; isUpgrade: boolean; credential: Access["credential"] | undefined },
  server: ServerState,
): RouteContext {
  const { requestId, gateway, record, head, info, answerHeaders } = exchange;
  const { timers, clients, drain } = server;
  return {
    gateway,
    requestId,
    record,
    head,
    info,
    params,
    caller,
    session,
    answerHeaders,
    clients,
    timers,
    drain,
    body,
    readJson: (scan) => body.readJson(scan),
    ...((credential === "admin" || credential === "session") && {
      isStillOperator: operatorCheck(exchange, { credential, gateway: server.gateway }),
    }),
    ...(isUpgrade && { connection: createConnectionHost(exchange, { caller, server }) }),
  };
}

/**
 * Returns the error for an unsupported WebSocket, at which clients fall back to plain requests. It is thrown before any
 * key is checked.
 */
function noUpgrade(): GatewayError {
  return new GatewayError("upgrade_required", "Cannot open a WebSocket: this endpoint speaks plain HTTP", {
    headers: { upgrade: "HTTP/1.1", connection: "upgrade" },
  });
}
