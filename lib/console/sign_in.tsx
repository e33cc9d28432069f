/** Signs operators in to the console and out of it. */
import type { VNode } from "preact";
import { roleOf } from "../access/authenticate_admin.ts";
import { beginSession, isEqual, SESSION_COOKIE, SESSION_MS } from "../access/console_session.ts";
import { logChange, originOf } from "../admin/changes.ts";
import { GatewayError } from "../errors.ts";
import { describeCause } from "../causes.ts";
import { refusedCredential } from "../server/client_tracker.ts";
import { acceptsSignInLinks, LINK_PARAMETER, SIGN_IN_PATH, takeSignInLink } from "../access/sign_in_link.ts";
import { requireAdmin } from "../server/console_guard.ts";
import type { RouteContext } from "../server/router.ts";
import { usesTls } from "./client_origin.ts";
import { CONSOLE, htmlResponse, queryOf, redirectTo, requireSameOrigin } from "./html.tsx";

/** `GET /admin/console/sign-in`: shows the form, or signs in if the query has the token of a sign-in link. */
export async function signInPage(request: Request, context: RouteContext): Promise<Response> {
  const hasKey = context.gateway.config.admin !== undefined;
  const token = queryOf(request).get(LINK_PARAMETER);
  // A browser that prefetches the link would invalidate it. After an error it loads the link again when it is opened.
  const status = token !== null && request.headers.has("sec-purpose") ? 503 : 200;
  if (token === null || request.method === "HEAD" || status === 503) {
    return htmlResponse({ title: "Sign in", status, body: <SignInForm hasKey={hasKey} /> });
  }
  try {
    return await signInByLink(token, { request, context });
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
    const body = <SignInForm hasKey={hasKey} error={thrown.message} />;
    return htmlResponse({ title: "Sign in", status: thrown.status, body });
  }
}

/** Begins a session with all rights for the holder of a sign-in link. Wrong tokens are counted by client address. */
async function signInByLink(
  token: string,
  { request, context }: { request: Request; context: RouteContext },
): Promise<Response> {
  const { gateway } = context;
  const { config, store, now } = gateway;
  const admin = requireAdmin(gateway);
  if (!acceptsSignInLinks(config) || !await takeSignInLink(store.operators, token, now())) {
    return refuseKey("This link is no longer valid: it works once, within ten minutes", context);
  }
  await logChange(gateway, { ...originOf(context), author: "one_time_link", action: "sign_in" });
  return redirectTo(CONSOLE, { "set-cookie": cookie(beginSession("one_time_link", { admin, now: now() }), request) });
}

/**
 * Refuses a wrong key that the page has read by itself, and counts it for the client's address.
 * @throws {GatewayError} `unauthenticated`, or `limited` if the address has sent too many wrong keys
 */
function refuseKey(message: string, context: RouteContext): never {
  const error = new GatewayError("unauthenticated", message);
  throw refusedCredential(context, { clients: context.clients, error, isOperators: true });
}

/**
 * `POST /admin/console/sign-in`: begins a session for the holder of an admin key. Wrong keys are counted by client
 * address.
 */
export async function signIn(request: Request, context: RouteContext): Promise<Response> {
  try {
    requireSameOrigin(request);
    const { gateway: { now } } = context;
    const admin = requireAdmin(context.gateway);
    const key = (await context.body.readForm()).get("key") ?? "";
    const role = roleOf(key.trim(), admin);
    if (role === undefined) return refuseKey("This admin key is not valid", context);
    const author = role === "viewer" ? "viewer_key" : "admin_key";
    await logChange(context.gateway, { ...originOf(context), author, action: "sign_in" });
    return redirectTo(CONSOLE, { "set-cookie": cookie(beginSession(author, { admin, now: now() }), request) });
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown;
    return htmlResponse({
      title: "Sign in",
      status: thrown.status,
      body: <SignInForm hasKey={context.gateway.config.admin !== undefined} error={thrown.message} />,
    });
  }
}

/** `POST /admin/console/sign-out`: ends the session. */
export async function signOut(request: Request, context: RouteContext): Promise<Response> {
  requireSameOrigin(request);
  const { session, gateway } = context;
  const fields = await context.body.readForm();
  if (session !== undefined && isEqual(fields.get("csrf") ?? "", session.csrf)) {
    try {
      await gateway.endedSessions.end(session, gateway.now());
    } catch (error) {
      gateway.log({ level: "warn", event: "sign_out_not_stored", ...describeCause(error) });
    }
    await logChange(gateway, { ...originOf(context), action: "sign_out" });
  }
  return redirectTo(SIGN_IN_PATH, { "set-cookie": cookie("", request) });
}

/** Returns the session cookie; an empty value removes it. It is `Secure` if the browser uses TLS. */
function cookie(value: string, request: Request): string {
  const maxAge = value === "" ? 0 : SESSION_MS / 1000;
  return `${SESSION_COOKIE}=${value}; Path=${CONSOLE}; Max-Age=${maxAge}; HttpOnly; SameSite=Strict${
    usesTls(request) ? "; Secure" : ""
  }`;
}

/**
 * Shows the form, or how to sign in without it.
 * @param props `hasKey`: whether there is an admin key, not only links
 */
function SignInForm({ hasKey, error }: { hasKey: boolean; error?: string }): VNode {
  const notice = error !== undefined && <p class="notice bad" role="alert">{error}</p>;
  if (!hasKey) {
    return (
      <>
        {notice}
        <p>
          Run <code>sluice console</code> on this machine: it prints a link that signs you in.
        </p>
      </>
    );
  }
  return (
    <>
      {notice}
      <form class="fields" method="post" action={SIGN_IN_PATH}>
        <label>
          Admin key
          <input type="password" name="key" required autofocus autocomplete="current-password" />
        </label>
        <button type="submit">Sign in</button>
      </form>
      <p class="dim">
        The admin key is the value of the environment variable that <code>admin.key</code> of the configuration names.
      </p>
    </>
  );
}
