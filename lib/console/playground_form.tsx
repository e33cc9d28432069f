/** The form of the playground. */
import type { VNode } from "preact";
import { keyPages } from "../access/key_admin.ts";
import type { ConsoleSession } from "../access/console_session.ts";
import { kindOfModalities } from "../catalog/model.ts";
import type { Gateway } from "../gateway.ts";
import { CONSOLE, CsrfField } from "./html.tsx";
import { ENDPOINT_PATHS, type FIELDS } from "./playground_request.ts";

/** Largest number of keys that are offered. Others can be typed. */
const MAX_OFFERED_KEYS = 200;

/** Keys and models to choose from. */
export interface Choices {
  keys: readonly string[];
  models: readonly { id: string; kind: string }[];
}

/** Reads the keys and models to choose from. */
export async function readChoices({ store, config, catalog }: Pick<Gateway, "store" | "config" | "catalog">): Promise<
  Choices
> {
  const stored: string[] = [];
  for await (const page of keyPages(store.keys)) {
    const inUse = page.filter(({ revokedAt, disabled }) => revokedAt === undefined && !disabled);
    stored.push(...inUse.map(({ name }) => name));
    if (stored.length >= MAX_OFFERED_KEYS) break;
  }
  return {
    keys: [...config.keys.map(({ name }) => name), ...stored.slice(0, MAX_OFFERED_KEYS)],
    models: catalog.models.map(({ id, architecture }) => ({
      id,
      kind: kindOfModalities(architecture.output_modalities),
    })),
  };
}

/** Shows the field for a key. Names are offered; ids can be typed as well. */
export function KeyField({ keys, value }: { keys: readonly string[]; value: string }): VNode {
  return (
    <label>
      Key
      <input name="key" list="keys" value={value || keys[0]} required autocomplete="off" />
      <datalist id="keys">{keys.map((name) => <option value={name} />)}</datalist>
    </label>
  );
}

/**
 * Shows the field for a model.
 * @param props `empty`: text of the option for no model; absent: there is no such option
 */
export function ModelField({ name, label, models, value, empty }: {
  name: string;
  label: string;
  models: Choices["models"];
  value: string;
  empty?: string;
}): VNode {
  const kinds = [...new Set(models.map(({ kind }) => kind))];
  return (
    <label>
      {label}
      <select name={name}>
        {empty !== undefined && <option value="">{empty}</option>}
        {kinds.map((kind) => (
          <optgroup label={kind}>
            {models.filter((model) => model.kind === kind).map(({ id }) => (
              <option value={id} selected={id === value}>{id}</option>
            ))}
          </optgroup>
        ))}
      </select>
    </label>
  );
}

/** Shows the form, or to viewers, who may not send requests, a note. */
export function PlaygroundForm(
  { session, fields, choices: { keys, models } }: {
    session: ConsoleSession;
    fields: typeof FIELDS;
    choices: Choices;
  },
): VNode {
  if (session.role !== "admin") return <p class="notice">The viewer key sends no requests: use the admin key.</p>;
  return (
    <form id="playground" method="post" action={`${CONSOLE}/playground`}>
      <CsrfField session={session} />
      <p class="dim">
        Requests are ordinary requests of the chosen key: with its permissions, limits and budget, billed to it, with
        the tag <code>playground</code>. Prompts and answers are not stored.
      </p>
      <div class="fields">
        <KeyField keys={keys} value={fields.key} />
        <label>
          Endpoint
          <select name="endpoint">
            {Object.entries(ENDPOINT_PATHS).map(([name, path]) => (
              <option value={name} selected={name === fields.endpoint}>{`${name}: ${path}`}</option>
            ))}
          </select>
        </label>
        <ModelField name="model" label="Model" models={models} value={fields.model} />
        <ModelField name="other" label="Compare with" models={models} value={fields.other} empty="no other model" />
      </div>
      <Area name="system" label="Instructions" value={fields.system} rows={2} />
      <Area name="prompt" label="Prompt, query, or texts to embed (one a line)" value={fields.prompt} rows={6} />
      <details open={fields.tools !== "" || fields.documents !== "" || fields.more !== ""}>
        <summary>Tools, documents, other parameters</summary>
        <Area
          name="tools"
          label='Tools, a JSON array such as [{"name": "time", "parameters": {"type": "object"}}]'
          value={fields.tools}
          rows={3}
        />
        <Area name="documents" label="Documents to rerank, one a line" value={fields.documents} rows={4} />
        <Area
          name="more"
          label='Further members of the body, JSON such as {"temperature": 0}'
          value={fields.more}
          rows={2}
        />
        <div class="fields">
          <label>
            Maximum output tokens
            <input name="max_tokens" value={fields.max_tokens} inputMode="numeric" />
          </label>
          <label>
            Image size
            <input name="size" value={fields.size} />
          </label>
        </div>
      </details>
      <p>
        <button type="submit" name="action" value="send">Send</button>{" "}
        <button type="submit" name="action" value="show" class="quiet">Show without sending</button>
      </p>
    </form>
  );
}

function Area({ name, label, value, rows }: { name: string; label: string; value: string; rows: number }): VNode {
  return (
    <label>
      {label}
      <textarea name={name} rows={rows} spellcheck={false}>{value}</textarea>
    </label>
  );
}
