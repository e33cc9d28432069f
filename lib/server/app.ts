/** The one function given to the server: a request comes in, a response goes out, nothing is ever thrown. */
import { ACCESS, type Access } from "../access/access_table.ts";
import { BodyReservation, RequestBody } from "./body.ts";
import { checkAccess } from "./surface.ts";
import { corsHeaders, preflight } from "./cors.ts";
import { type Drain, stopping } from "./drain.ts";
import {
  type App,
  type AppOptions,
  beginExchange,
  cacheSettings,
  createServerState,
  type Exchange,
  type ServerState,
} from "./exchange.ts";
import { observed, withHeaders, withoutBody, writeAbandoned, writeError } from "./finish_response.ts";
import { addressOf, countConcurrent, refuseCredential } from "./client_tracker.ts";
import { readTarget } from "./route_matcher.ts";
import { METHODS, type RouteContext } from "./router.ts";
import { GatewayError } from "../errors.ts";
import { createConnectionHost } from "./connection_host.ts";
import { redirectToSignIn, requireReading, sessionOf } from "./console_guard.ts";
import { authorizeRequest, enterRefusal, noSuchRoute, operatorCheck } from "./request_guard.ts";
import { startPage } from "./start_page.ts";

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
      // An answer is under way until its last byte is.
      if (isAnswered && endConcurrent && info) info.completed.then(endConcurrent, endConcurrent);
      else endConcurrent?.();
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

/** Header by which a caller asks for its own address as the gateway sees it, to check the configuration of proxies. */
const SHOW = "x-sluice-show";

/** From the target to the handler's answer. @throws {GatewayError} for the app to write */
async function answerRequest(exchange: Exchange, server: ServerState): Promise<Response> {
  const { request, head, gateway, record } = exchange;
  const { method } = request;
  // Its target is a host without a path, so no route applies.
  if (method === "CONNECT") {
    throw new GatewayError("method_not_allowed", "Cannot use method CONNECT: this is no proxy", {
      headers: { allow: [...METHODS, "HEAD"].sort().join(", ") },
    });
  }
  const match = exchange.match ?? server.routes.find({ url: request.url, headers: head });
  head.check();
  if (match === undefined) {
    const { path } = readTarget({ url: request.url, headers: head });
    const page = startPage(exchange, { path, surface: server.surface });
    if (page === undefined) throw noSuchRoute(path);
    return page;
  }
  const { route: { path, isForOperators, allowed, methods }, params } = match;
  if (isForOperators) {
    // Metrics are where the admin side is.
    const isElsewhere = path === "/metrics" && gateway.config.admin?.listen !== undefined;
    if (isElsewhere && server.surface === "public") throw noSuchRoute();
    exchange.origins = [];
  }
  gateway.observer.routed(record, path);
  const flight = method === "OPTIONS" ? preflight(head, exchange.origins, allowed) : undefined;
  if (flight !== undefined) return flight;
  const upgrade = head.get("upgrade");
  const isUpgrade = upgrade !== null && /\bwebsocket\b/i.test(upgrade);
  const found = methods.get(method);
  if (isUpgrade && (method !== "GET" || found?.row?.websocket !== true)) throw noUpgrade();
  if (found === undefined) {
    throw new GatewayError("method_not_allowed", `Cannot use this method here: expected ${allowed.join(", ")}`, {
      headers: { allow: allowed.join(", ") },
    });
  }
  if (server.drain.phase !== "serving" && (isUpgrade || turnsAway(server.drain, path))) throw stopping();
  const caller = await authorizeRequest(exchange, { row: found.row, clients: server.clients });
  const credential = found.row?.credential;
  const session = credential === "session" || credential === "sign_in" ? await sessionOf(exchange) : undefined;
  if (credential === "session") {
    if (session === undefined) return redirectToSignIn();
    if (session.role === "viewer") requireReading(request);
  }
  const limits = isForOperators ? exchange.settings.adminLimits : exchange.settings.limits;
  const most = gateway.config.resource_limits.requests_per_client;
  if (caller !== undefined) {
    if (head.get(SHOW) === "client-address") exchange.shownAddress = addressOf(exchange);
    try {
      if (most !== undefined) {
        exchange.endConcurrent = countConcurrent(exchange, { clients: server.clients, caller, most });
      }
    } catch (error) {
      await enterRefusal(error, { gateway, requestId: exchange.requestId, record, caller });
    }
  }
  const rules = {
    headers: head,
    limits,
    budget: new BodyReservation(server.budget, caller?.keyId),
    keyId: caller?.keyId,
    timers: server.timers,
  };
  const body = exchange.body = new RequestBody(request, rules, exchange);
  return await found.handler(
    request,
    contextOf(exchange, { body, params, caller, session, isUpgrade, credential }, server),
  );
}

/** The context of a handler. */
function contextOf(
  exchange: Exchange,
  { body, params, caller, session, isUpgrade, credential }:
    & Pick<RouteContext, "params" | "caller" | "session">
    & { body: RequestBody; isUpgrade: boolean; credential: Access["credential"] | undefined },
  server: ServerState,
): RouteContext {
  const { requestId, gateway, record, bodyArrived, answerHeaders } = exchange;
  const { timers, clients, drain } = server;
  return {
    gateway,
    requestId,
    record,
    params,
    caller,
    session,
    answerHeaders,
    address: () => addressOf(exchange),
    timers,
    drain,
    readJson: (scan) => body.readJson(scan),
    readForm: () => body.readForm(),
    // Only operators' pages read keys by themselves.
    refuseCredential: (error) => refuseCredential(exchange, { clients, error, isOperators: true }),
    reserve: (bytes, received) => body.reserve(bytes, received),
    arrived: bodyArrived,
    ...((credential === "admin" || credential === "session") && {
      isStillOperator: operatorCheck(exchange, { credential, gateway: server.gateway }),
    }),
    ...(isUpgrade && { connection: createConnectionHost(exchange, { caller, server }) }),
  };
}

/** A server that shuts down is alive but not ready. In its last phase it answers only health checks. */
function turnsAway({ phase }: Drain, path: string): boolean {
  return path === "/readyz" || phase === "refusing" && path !== "/healthz";
}

/** Clients that try a WebSocket first fall back to plain requests when they see this, before any key is looked at. */
function noUpgrade(): GatewayError {
  return new GatewayError("upgrade_required", "Cannot open a WebSocket: this endpoint speaks plain HTTP", {
    headers: { upgrade: "HTTP/1.1", connection: "upgrade" },
  });
}
