/** Texts that can be copied. */
import type { VNode } from "preact";

/** A short text with a button that copies it, shown by `copy.js`. @param label its name, for people who do not see it */
export function Copyable({ text, label }: { text: string; label: string }): VNode {
  return (
    <span class="copyable">
      <code>{text}</code> <button type="button" class="copy quiet" hidden aria-label={`Copy ${label}`}>Copy</button>
    </span>
  );
}

/** A text of several lines with a button that copies it. */
export function CopyableBlock({ text, label }: { text: string; label: string }): VNode {
  return (
    <div class="copyable">
      <pre tabIndex={0} aria-label={label}>{text}</pre>
      <button type="button" class="copy quiet" hidden aria-label={`Copy ${label}`}>Copy</button>
    </div>
  );
}
