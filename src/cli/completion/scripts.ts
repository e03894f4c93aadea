/** What makes a shell ask the program for completions. */

/** Also for bash 3.2, which macOS has. Words are cut at blanks: bash itself cuts them at = and : too. */
const BASH = `# bash completion of tributary. Load it by:  source <(tributary completion bash)
_tributary() {
  local line=\${COMP_LINE:0:COMP_POINT} words cur cut='' out value directive=4
  read -ra words <<<"$line"
  [[ $line == *[[:blank:]] ]] && words+=('')
  while ((\${#words[@]} > 0)) && [[ \${words[0]} != "$1" ]]; do words=("\${words[@]:1}"); done
  ((\${#words[@]} > 1)) || return 0
  cur=\${words[\${#words[@]} - 1]}
  out=$("\${1/#\\~/$HOME}" __complete "\${words[@]:1}" 2>/dev/null) || return 0
  # What bash takes for words of their own must not be given back.
  [[ $cur == *[=:]* && $COMP_WORDBREAKS == *[=:]* ]] && cut=\${cur%"\${cur##*[=:]}"}
  COMPREPLY=()
  while IFS=$'\\t' read -r value _; do
    case $value in
      :*) directive=\${value#:} ;;
      "$cur"*) COMPREPLY+=("\${value#"$cut"}") ;;
    esac
  done <<<"$out"
  ((directive & 2)) && compopt -o nospace 2>/dev/null
  if (((directive & 4) == 0 && \${#COMPREPLY[@]} == 0)); then
    compopt -o filenames 2>/dev/null
    while IFS= read -r value; do COMPREPLY+=("$value"); done < <(compgen -f -- "\${cur#"$cut"}")
  fi
  return 0
}
complete -F _tributary tributary
`;

const ZSH = `#compdef tributary
# zsh completion of tributary. Load it by:  source <(tributary completion zsh)
# or put it as _tributary into a directory of $fpath.
_tributary() {
  local -a lines values suffix
  local line value text
  lines=("\${(@f)$("\${words[1]}" __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  local -i directive=\${\${lines[-1]#:}:-4}
  lines[-1]=()
  for line in "\${lines[@]}"; do
    value=\${line%%$'\\t'*}
    text=\${line#"$value"}
    values+=("\${value//:/\\\\:}\${text:+:\${text#$'\\t'}}")
  done
  ((directive & 2)) && suffix=(-S '')
  if ((\${#values})); then
    _describe 'tributary' values "\${suffix[@]}"
  elif (((directive & 4) == 0)); then
    _files
  fi
}
if [[ \${funcstack[1]} == _tributary ]]; then
  _tributary "$@"
elif (($+functions[compdef])); then
  compdef _tributary tributary
fi
`;

const FISH = `# fish completion of tributary. Load it by:  tributary completion fish | source
function __tributary_complete
    set -l words (commandline -opc)
    set -l cursor (commandline -ct)
    set -l lines ($words[1] __complete $words[2..-1] "$cursor" 2>/dev/null)
    test (count $lines) -gt 0; or return
    set -l directive (string sub -s 2 -- $lines[-1])
    set -e lines[-1]
    if test (count $lines) -gt 0
        printf '%s\\n' $lines
    else if test (math "floor($directive / 4) % 2") -eq 0
        __fish_complete_path "$cursor"
    end
end
complete -c tributary -f -k -a '(__tributary_complete)'
`;

export const SCRIPTS: Readonly<Record<'bash' | 'zsh' | 'fish', string>> = {
  bash: BASH,
  zsh: ZSH,
  fish: FISH,
};
