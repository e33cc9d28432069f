/** The log of operators' changes. */
import type { VNode } from "preact";
import { type ChangeLine, readChanges } from "../admin/changes.ts";
import type { RouteContext } from "../server/router.ts";
import { Moment, Table } from "./format.tsx";
import { CONSOLE, queryOf, showPage } from "./html.tsx";

/** Longest value that the page shows whole, in characters; the rest is in its title. */
const LONGEST_VALUE = 120;

/** `GET /admin/console/changes`. */
export function changesPage(request: Request, context: RouteContext): Promise<Response> {
  return showPage(context, async () => {
    const cursor = queryOf(request).get("cursor") ?? "";
    const { data, next } = await readChanges(context.gateway.store, cursor === "" ? {} : { cursor });
    return {
      title: "Changes",
      body: (
        <>
          <Table
            columns={["When", "Who", "From", "What", "Of", "Change"]}
            rows={data.map((line) => [
              <Moment iso={line.at} />,
              line.author.replaceAll("_", " "),
              line.address ?? "–",
              line.action.replaceAll("_", " "),
              <Subject line={line} />,
              <Members line={line} />,
            ])}
            empty="No changes are logged yet."
          />
          {next !== null && (
            <p>
              <a href={`${CONSOLE}/changes?cursor=${next}`}>Earlier changes</a>
            </p>
          )}
        </>
      ),
    };
  });
}

/** The key that was changed, by the name that it had then. */
function Subject({ line: { action, subject, after } }: { line: ChangeLine }): VNode {
  if (subject === null || !action.endsWith("_key")) return <>{subject ?? "–"}</>;
  return <a href={`${CONSOLE}/keys/${encodeURIComponent(subject)}`} title={subject}>{String(after?.name ?? subject)}
  </a>;
}

function Members({ line: { action, before, after } }: { line: ChangeLine }): VNode {
  const isKey = action.endsWith("_key");
  const names = Object.keys({ ...before, ...after }).filter((name) => !isKey || before === null || name in before);
  if (names.length === 0) return <>–</>;
  return (
    <ul class="plain">
      {names.map((name) => (
        <li>
          {`${name}: `}
          {before !== null && <>{<Value value={before[name]} />} {"→ "}</>}
          <Value value={after?.[name]} />
        </li>
      ))}
    </ul>
  );
}

function Value({ value }: { value: unknown }): VNode {
  const text = value === null || value === undefined
    ? "none"
    : typeof value === "string"
    ? value
    : JSON.stringify(value);
  return <code title={text}>{text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text}</code>;
}
