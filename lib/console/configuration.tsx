/** The running configuration without its secrets, and its reload. */
import { originOf } from "../admin/changes.ts";
import { withoutSecrets } from "../admin/config.ts";
import { GatewayError } from "../errors.ts";
import type { RouteContext } from "../server/router.ts";
import { Cards, Moment } from "./format.tsx";
import { CONSOLE, CsrfField, runForm, showPage } from "./html.tsx";

/** `GET /admin/console/configuration`. */
export function configurationPage(_request: Request, context: RouteContext): Promise<Response> {
  return showPage(context, (session) => {
    const { config, reloader } = context.gateway;
    const { loaded_at, source, version, last_error } = reloader.status();
    return {
      title: "Configuration",
      body: (
        <>
          <Cards cards={[["Source", source], ["Version", version], ["In force since", <Moment iso={loaded_at} />]]} />
          {last_error !== undefined && (
            <div class="notice bad" role="alert">
              <p>
                The latest change cannot be used, since <Moment iso={last_error.at} />:
              </p>
              <ul>{last_error.problems.map((problem) => <li>{problem}</li>)}</ul>
            </div>
          )}
          {session.role === "admin" && (
            <form method="post" action={`${CONSOLE}/configuration`}>
              <CsrfField session={session} />
              <button type="submit">Reload the file</button>
            </form>
          )}
          <h2>What runs, without secrets</h2>
          <pre tabIndex={0}>{JSON.stringify(withoutSecrets(config), null, 2)}</pre>
        </>
      ),
    };
  });
}

/** `POST /admin/console/configuration`: reloads the file. */
export function reloadFromForm(request: Request, context: RouteContext): Promise<Response> {
  return runForm(request, context, async () => {
    const { reloader } = context.gateway;
    const reloaded = await reloader.reload("admin", originOf(context));
    if (reloaded.outcome === "refused") throw new GatewayError("invalid", reloaded.problems.join("; "));
    return `${CONSOLE}/configuration`;
  });
}
