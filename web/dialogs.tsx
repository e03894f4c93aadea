/** What is asked before something is done. The browser's own dialogs keep the focus inside and give it back. */
import type { ComponentChildren, VNode } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Asking, Do } from './doing.ts';

interface DialogProps {
  title: string;
  /** On the button. */
  word: string;
  isHarsh?: boolean;
  onClose: () => void;
  /** Resolves with whether the dialog can close. */
  onSubmit: (fields: Record<string, string>) => Promise<boolean>;
  children: ComponentChildren;
}

function Dialog({ title, word, isHarsh = false, onClose, onSubmit, children }: DialogProps): VNode {
  const element = useRef<HTMLDialogElement>(null);
  const [isBusy, setBusy] = useState(false);
  useLayoutEffect(() => element.current?.showModal(), []);
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const fields: Record<string, string> = {};
    for (const [name, value] of new FormData(form)) if (typeof value === 'string') fields[name] = value;
    setBusy(true);
    const isDone = await onSubmit(fields);
    setBusy(false);
    if (isDone) element.current?.close();
  };
  return (
    <dialog ref={element} onClose={onClose} aria-labelledby="dialog-title">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit(event.currentTarget);
        }}
      >
        <h2 id="dialog-title">{title}</h2>
        {children}
        <div class="buttons end">
          <button type="button" onClick={() => element.current?.close()}>
            Cancel
          </button>
          <button type="submit" class={isHarsh ? 'harsh' : 'main'} disabled={isBusy}>
            {word}
          </button>
        </div>
      </form>
    </dialog>
  );
}

export const AskDialog = ({
  asking,
  run,
  onClose,
}: {
  asking: Asking;
  run: Do;
  onClose: () => void;
}): VNode => (
  <Dialog
    title={asking.title}
    word={asking.word}
    isHarsh={asking.isHarsh}
    onClose={onClose}
    onSubmit={async () => {
      await run(asking.action);
      return true;
    }}
  >
    <p>{asking.text}</p>
  </Dialog>
);

export const PeerDialog = ({ run, onClose }: { run: Do; onClose: () => void }): VNode => (
  <Dialog
    title="Peer with a cluster"
    word="Peer"
    onClose={onClose}
    onSubmit={async ({ endpoint = '', clusterID = '', token = '' }) =>
      run({ do: 'peer', endpoint, ...(clusterID !== '' && { clusterID }), ...(token !== '' && { token }) })
    }
  >
    <label class="field">
      Address of its peering endpoint
      <input name="endpoint" required autocomplete="off" spellcheck={false} placeholder="192.0.2.7:30743" />
    </label>
    <label class="field">
      Token
      <textarea name="token" rows={3} autocomplete="off" spellcheck={false} aria-describedby="token-help" />
    </label>
    <p class="muted small" id="token-help">
      Its administrator makes one with <code>tributary token create</code>.
    </p>
    <label class="field">
      Or its ClusterID, where no token is needed
      <input name="clusterID" autocomplete="off" spellcheck={false} maxLength={26} />
    </label>
  </Dialog>
);

export const OffloadDialog = ({
  namespace,
  run,
  onClose,
}: {
  namespace: string;
  run: Do;
  onClose: () => void;
}): VNode => (
  <Dialog
    title={`Offload ${namespace}`}
    word="Offload"
    onClose={onClose}
    onSubmit={async ({ strategy }) => {
      await run({ do: 'offload', namespace, strategy: strategy === 'Remote' ? 'Remote' : 'LocalAndRemote' });
      return true;
    }}
  >
    <fieldset>
      <legend>New pods of this namespace run</legend>
      <label class="choice">
        {/* Not `checked`: that would be set again with each change of the cluster, over the choice that was made. */}
        <input type="radio" name="strategy" value="LocalAndRemote" defaultChecked /> here or in other
        clusters, where the scheduler finds room
      </label>
      <label class="choice">
        <input type="radio" name="strategy" value="Remote" /> in other clusters only
      </label>
    </fieldset>
  </Dialog>
);
