/** The page with settings of clients for a key and a model. */
import { GatewayError } from "../errors.ts";
import { plainText } from "../text.ts";
import type { RouteContext } from "../server/router.ts";
import { mayUse } from "../access/permissions.ts";
import { clientOrigin } from "./client_origin.ts";
import { CLIENTS } from "./clients.ts";
import { CopyableBlock } from "./copy.tsx";
import { CONSOLE, queryOf, showPage } from "./html.tsx";
import { KeyField, ModelField, readChoices } from "./playground_form.tsx";
import { findCaller } from "./playground_send.ts";

/** `GET /admin/console/connect`. */
export function connectPage(request: Request, context: RouteContext): Promise<Response> {
  const { gateway } = context;
  return showPage(context, async () => {
    const query = queryOf(request);
    const { keys, models } = await readChoices(gateway);
    const texts = models.filter(({ kind }) => kind === "text");
    const key = query.get("key") || keys[0] || "";
    const model = query.get("model") || texts[0]?.id || "";
    const origin = readOrigin(query.get("origin") || clientOrigin(request, gateway.config));
    const problem = key === "" ? "There is no key yet: create one." : await problemOf(key, { model, gateway });
    return {
      title: "Connect",
      scripts: ["copy.js"],
      body: (
        <>
          <form class="fields" method="get" action={`${CONSOLE}/connect`}>
            <KeyField keys={keys} value={key} />
            <ModelField name="model" label="Model" models={texts} value={model} />
            <label>
              Address of the gateway
              <input name="origin" type="url" value={origin} required />
            </label>
            <button type="submit">Show</button>
          </form>
          {problem !== undefined && <p class="notice warn">{problem}</p>}
          <h2>The key</h2>
          <p>The secret was shown when the key was made. Put it in place of the dots.</p>
          <CopyableBlock
            text={`export SLUICE_API_KEY=sk-sluice-…   # ${commentText(key)}`}
            label="variable with the key"
          />
          {(["SDK", "agent"] as const).map((kind) => (
            <>
              <h2>{kind === "SDK" ? "SDKs" : "Coding agents"}</h2>
              {CLIENTS.filter((client) => client.kind === kind).map(({ name, place, settings, note }) => (
                <>
                  <h3>{name}</h3>
                  <p class="dim">{`${place}.${note === undefined ? "" : ` ${note}`}`}</p>
                  <CopyableBlock text={settings({ origin, model })} label={`settings of ${name}`} />
                </>
              ))}
            </>
          ))}
        </>
      ),
    };
  });
}

/**
 * Returns the name of a key for a comment in a shell script: always one line, because the query may contain anything.
 */
function commentText(name: string): string {
  return plainText(name, name.length);
}

/** Returns the reason why a key cannot use a model; `undefined` if it can. */
async function problemOf(
  key: string,
  { model, gateway }: { model: string; gateway: RouteContext["gateway"] },
): Promise<string | undefined> {
  try {
    const caller = await findCaller(gateway, key);
    return mayUse(caller, model) ? undefined : `Key "${key}" may not use model "${model}".`;
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return error.message;
  }
}

/** Reads the origin of an address. @throws {GatewayError} `invalid` if it is no http or https address */
function readOrigin(text: string): string {
  const url = URL.parse(text.trim());
  // A shell would run other characters, which URLs may have in a host name.
  if (url === null || !/^https?:\/\/[\w.:[\]-]+$/.test(url.origin)) {
    throw new GatewayError("invalid", `Cannot use the address "${text}": expected one such as http://127.0.0.1:8790`);
  }
  return url.origin;
}
