/** The page with the log of operators' changes. */
import type { VNode } from "preact";
import { changedMembers, MAX_VALUE_CHARACTERS } from "../admin/changed_members.ts";
import { readChanges } from "../admin/changes.ts";
import type { ChangeLine } from "../admin/schemas.ts";
import type { RouteContext } from "../server/router.ts";
import { Moment, ShortCode, Table } from "./format.tsx";
import { CONSOLE, keyPath, queryOf, showPage } from "./html.tsx";

/** `GET /admin/console/changes`. */
export function changesPage(request: Request, context: RouteContext): Promise<Response> {
  return showPage(context, async () => {
    const query = queryOf(request);
    const [cursor, requestId] = [query.get("cursor") ?? "", query.get("request") ?? ""];
    const { data, next } = await readChanges(context.gateway.store, {
      ...(cursor !== "" && { cursor }),
      ...(requestId !== "" && { request: requestId }),
    });
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
              line.action.replaceAll("_", " ").replace("sign in link", "sign-in link"),
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

/**
 * Shows the subject of a change. A key that was changed, or that sent a request, appears with its name at that time.
 */
function Subject({ line: { action, subject, after } }: { line: ChangeLine }): VNode {
  const isKey = action.endsWith("_key") || action === "send_playground_request";
  if (subject === null || !isKey) return <>{subject ?? "–"}</>;
  return <a href={keyPath(subject)} title={subject}>{String(after?.name ?? after?.key ?? subject)}</a>;
}

function Members({ line }: { line: ChangeLine }): VNode {
  // The name of a changed key is in the column before.
  const isChangedKey = line.action.endsWith("_key") && line.before !== null;
  const members = changedMembers(line).filter((member) => !isChangedKey || "before" in member);
  if (members.length === 0) return <>–</>;
  return (
    <ul class="plain">
      {members.map((member) => (
        <li>
          {`${member.path}: `}
          {"before" in member && <>{<ChangedValue value={member.before} />} {"→ "}</>}
          {member.path === "request_id"
            ? <RequestLink id={String(member.after)} />
            : <ChangedValue value={member.after} />}
        </li>
      ))}
    </ul>
  );
}

function RequestLink({ id }: { id: string }): VNode {
  return (
    <a href={`${CONSOLE}/requests/${encodeURIComponent(id)}`}>
      <code>{id}</code>
    </a>
  );
}

function ChangedValue({ value }: { value: unknown }): VNode {
  const shown = value === undefined ? "none" : value;
  const text = typeof shown === "string" ? shown : JSON.stringify(shown);
  return <ShortCode text={text} max={MAX_VALUE_CHARACTERS} />;
}
