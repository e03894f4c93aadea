/** Whoever has a token that the API server knows may come in, and sees what they may see with kubectl. */
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { signIn } from './api.ts';

export function SignIn({ message, onIn }: { message: string; onIn: () => void }): VNode {
  const [failure, setFailure] = useState(message);
  const [isBusy, setBusy] = useState(false);
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const token = new FormData(form).get('token');
    setBusy(true);
    const answer = await signIn({ token: typeof token === 'string' ? token : '' });
    setBusy(false);
    form.reset();
    if (answer.ok) onIn();
    else setFailure(answer.failure.message);
  };
  return (
    <main class="sign-in">
      <form
        class="panel"
        onSubmit={(event) => {
          event.preventDefault();
          void submit(event.currentTarget);
        }}
      >
        <img src="/icon.svg" alt="" width="48" height="48" />
        <h1>Tributary</h1>
        <p class="muted">Sign in with a Kubernetes token. You see and do here what you may with kubectl.</p>
        <label class="field">
          Token
          <input
            type="password"
            name="token"
            required
            autocomplete="off"
            aria-describedby="sign-in-help"
            aria-invalid={failure !== ''}
          />
        </label>
        <p class="muted small" id="sign-in-help">
          <code>kubectl --namespace NAMESPACE create token ACCOUNT</code> makes one. It is kept in the memory
          of the role cluster until you sign out.
        </p>
        <p class="failure" role="alert">
          {failure}
        </p>
        <button type="submit" class="main wide" disabled={isBusy}>
          Sign in
        </button>
      </form>
    </main>
  );
}
